"""Small and odd configs of causal decoders, one a model type: heads that do not make up the width, windows, biases.

And what transformers' own defaults lack where it cannot build or run them.
"""

from __future__ import annotations

from typing import Any

LLAMA = {
    "vocab_size": 96,
    "hidden_size": 72,
    "intermediate_size": 104,
    "num_hidden_layers": 4,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
}
WIDE = LLAMA | {"head_dim": 10}
TIED = {"tie_word_embeddings": True}
SHORT = {"sliding_window": 5}
BIASED = {"attention_bias": True, "mlp_bias": True}
AB = {"attention_bias": True}
ROPE = {"rope_type": "default", "rope_theta": 1e4}
PAD = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
GPT2 = {"vocab_size": 96, "n_embd": 72, "n_layer": 3, "n_head": 6, "n_positions": 64}
EXPERTS = {"num_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 40}
ROUTED = {
    "n_routed_experts": 8,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 40,
    "n_group": 2,
    "topk_group": 1,
    "n_shared_experts": 2,
}
DENSE1 = {"mlp_layer_types": ["dense", "sparse", "sparse", "sparse"]}
MLA = {
    "q_lora_rank": 24,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 6,
    "num_key_value_heads": 6,
}
INDEX = {"index_n_heads": 3, "index_head_dim": 8, "index_topk": 5}
SWA = {"layer_types": ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]} | SHORT
BART = {
    "vocab_size": 96,
    "d_model": 72,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "encoder_attention_heads": 6,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 104,
    "decoder_ffn_dim": 88,
    "max_position_embeddings": 64,
}
BERT = {
    "vocab_size": 96,
    "hidden_size": 72,
    "intermediate_size": 104,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "max_position_embeddings": 64,
    "type_vocab_size": 3,
    **PAD,
    "is_decoder": True,
}
NOTYPES = {k: v for k, v in BERT.items() if k != "type_vocab_size"}

SMALL: dict[str, dict[str, Any]] = {
    "apertus": LLAMA | AB | PAD,
    "apertus1p5_text": LLAMA | AB | PAD,
    "arcee": WIDE | BIASED | PAD,
    "biogpt": {k: v for k, v in LLAMA.items() if k != "num_key_value_heads"} | TIED | PAD,
    "bitnet": LLAMA | PAD,
    "codegen": GPT2 | {"n_ctx": 64, "rotary_dim": 4, "tie_word_embeddings": False, **PAD},
    "ctrl": {"vocab_size": 96, "n_positions": 64, "n_embd": 72, "dff": 104, "n_layer": 3, "n_head": 6, **PAD},
    "cwm": WIDE | SWA | PAD,
    "diffllama": LLAMA | AB | PAD | {"num_key_value_heads": 2},
    "ernie4_5": WIDE | {"use_bias": True} | PAD,
    "exaone": WIDE | PAD,
    "exaone4": WIDE | SWA | PAD | {"head_dim": 12},
    "gpt-sw3": GPT2 | {"n_inner": 104} | PAD,
    "gpt_bigcode": GPT2 | {"n_inner": 104} | PAD,
    "gpt_neo": {
        "vocab_size": 96,
        "hidden_size": 72,
        "num_layers": 4,
        "num_heads": 6,
        "max_position_embeddings": 64,
        "intermediate_size": 104,
        "window_size": 5,
        "attention_types": [[["global", "local"], 2]],
        **PAD,
    },
    "gpt_neox_japanese": {
        "vocab_size": 96,
        "hidden_size": 72,
        "num_hidden_layers": 3,
        "num_attention_heads": 6,
        "intermediate_multiple_size": 3,
        "max_position_embeddings": 64,
        "tie_word_embeddings": False,
        **PAD,
    },
    "granite": LLAMA | BIASED | PAD,
    "granite_swa": LLAMA | SWA | PAD | AB,
    "helium": LLAMA | BIASED | PAD | {"head_dim": 12},
    "hunyuan_v1_dense": WIDE | AB | PAD,
    "hyperclovax": LLAMA | BIASED | PAD | {"use_post_norm": False},
    "internlm3": WIDE | PAD,
    "iquestcoder": WIDE | PAD,
    "jais2": WIDE | PAD,
    "ministral3": WIDE | SHORT | PAD,
    "modernbert-decoder": {
        "vocab_size": 96,
        "hidden_size": 72,
        "intermediate_size": 104,
        "num_hidden_layers": 4,
        "num_attention_heads": 6,
        "max_position_embeddings": 64,
        "local_attention": 10,
        "attention_bias": True,
        "mlp_bias": True,
        "norm_bias": True,
        "tie_word_embeddings": False,
        **PAD,
        "cls_token_id": 3,
        "sep_token_id": 4,
    },
    "nanochat": LLAMA | PAD,
    "olmo3": LLAMA | SWA | PAD,
    "openai-gpt": GPT2 | PAD,
    "persimmon": {k: v for k, v in LLAMA.items() if k != "num_key_value_heads"} | PAD,
    "seed_oss": WIDE | PAD | {"attention_out_bias": True},
    "vaultgemma": WIDE | SWA | PAD | TIED,
    "xglm": {
        "vocab_size": 96,
        "d_model": 72,
        "ffn_dim": 104,
        "num_layers": 3,
        "attention_heads": 6,
        "max_position_embeddings": 64,
        **PAD,
    },
    "minicpm3": LLAMA | MLA | PAD,
    "youtu": LLAMA | MLA | PAD,
    "moshi": WIDE | PAD | {"ffn_dim": 104, "sliding_window": 5},
    "afmoe": WIDE
    | EXPERTS
    | PAD
    | {"num_dense_layers": 1, "num_shared_experts": 2, "sliding_window": 5, "global_attn_every_n_layers": 2},
    "aria_text": WIDE | PAD | BIASED | {"moe_num_experts": 4, "moe_topk": 2, "moe_num_shared_experts": 3},
    "axk1": LLAMA | MLA | ROUTED | DENSE1 | PAD,
    "beam": WIDE | EXPERTS | DENSE1 | SWA | PAD | {"n_group": 2, "topk_group": 1},
    "cohere2_moe": WIDE
    | TIED
    | PAD
    | {
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "num_shared_experts": 2,
        "sliding_window": 5,
        "mlp_layer_types": ["dense", "sparse", "sparse", "sparse"],
        "prefix_dense_intermediate_size": 88,
        "head_dim": 12,
    },
    "deepseek_v32": LLAMA | MLA | ROUTED | INDEX | PAD | {"first_k_dense_replace": 2},
    "dots1": LLAMA
    | ROUTED
    | PAD
    | {
        "first_k_dense_replace": 1,
        "sliding_window": 5,
        "max_window_layers": 2,
        "head_dim": 10,
        "layer_types": ["full_attention", "full_attention", "sliding_attention", "sliding_attention"],
    },
    "ernie4_5_moe": LLAMA
    | TIED
    | PAD
    | {
        "moe_num_experts": 8,
        "moe_k": 3,
        "moe_num_shared_experts": 2,
        "moe_intermediate_size": 40,
        "moe_layer_start_index": 1,
        "moe_layer_end_index": 2,
        "num_hidden_layers": 5,
        "use_bias": True,
    },
    "exaone_moe": WIDE | EXPERTS | DENSE1 | SWA | PAD | {"head_dim": 12, "num_shared_experts": 2},
    "flex_olmo": LLAMA | {"num_experts": 4, "num_experts_per_tok": 2} | PAD,
    "flint": WIDE | EXPERTS | SWA | PAD | {"mlp_only_layers": [0], "shared_expert_intermediate_size": 56},
    "glm4_moe_lite": LLAMA | MLA | ROUTED | DENSE1 | PAD | {"attention_bias": True},
    "glm_moe_dsa": LLAMA
    | MLA
    | ROUTED
    | DENSE1
    | INDEX
    | PAD
    | {"indexer_types": ["full", "shared", "full", "shared"]},
    "granitemoe": LLAMA | {"num_local_experts": 4, "num_experts_per_tok": 2} | PAD,
    "granitemoeshared": LLAMA
    | {"num_local_experts": 4, "num_experts_per_tok": 2, "shared_intermediate_size": 56}
    | PAD,
    "granitemoe_swa": LLAMA
    | SWA
    | {"num_local_experts": 4, "num_experts_per_tok": 2, "shared_intermediate_size": 56}
    | PAD,
    "hunyuan_v1_moe": WIDE | PAD | {"num_experts": 4, "moe_topk": 2},
    "hy_v3": WIDE | EXPERTS | PAD | BIASED | {"num_shared_experts": 2},
    "kolibri1": WIDE | EXPERTS | SWA | PAD | {"shared_expert_intermediate_size": 56},
    "laguna": WIDE
    | EXPERTS
    | SWA
    | DENSE1
    | PAD
    | {"shared_expert_intermediate_size": 56, "num_attention_heads_per_layer": [6, 4, 6, 8]},
    "mellum": WIDE
    | SWA
    | PAD
    | {
        "num_local_experts": 8,
        "num_experts_per_tok": 3,
        "moe_intermediate_size": 40,
        "mlp_layer_types": ["dense", "sparse", "sparse", "dense"],
    },
    "mimo_v2_flash": WIDE | ROUTED | SWA | PAD | {"v_head_dim": 6, "num_key_value_heads": 3},
    "minimax_m3_vl_text": WIDE
    | PAD
    | {
        "num_local_experts": 8,
        "num_experts_per_tok": 3,
        "dense_intermediate_size": 88,
        "shared_intermediate_size": 56,
        "mlp_layer_types": ["dense", "sparse", "sparse", "sparse"],
        "rotary_dim": 10,
    },
    "sarvam_mla": LLAMA | MLA | ROUTED | PAD | {"first_k_dense_replace": 1},
    "sarvam_moe": WIDE | ROUTED | PAD | {"first_k_dense_replace": 1, "use_qk_norm": False},
    "solar_open": {k: v for k, v in WIDE.items() if k != "intermediate_size"} | ROUTED | PAD,
    "dots3_note_text": LLAMA
    | MLA
    | ROUTED
    | DENSE1
    | INDEX
    | PAD
    | {
        "sliding_window": 5,
        "layer_types": ["indexed_attention", "sliding_attention", "sliding_attention", "indexed_attention"],
        "shared_experts_intermediate_size": 56,
        "per_layer_config": {
            "1": {
                "num_attention_heads": 4,
                "num_key_value_heads": 4,
                "kv_lora_rank": 20,
                "q_lora_rank": 18,
                "qk_nope_head_dim": 6,
                "head_dim": 10,
            },
            "2": {
                "num_attention_heads": 4,
                "num_key_value_heads": 4,
                "kv_lora_rank": 20,
                "q_lora_rank": 18,
                "qk_nope_head_dim": 6,
                "head_dim": 10,
            },
        },
    },
    "bert": BERT,
    "bert-generation": NOTYPES,
    "big_bird": BERT | {"attention_type": "original_full"},
    "camembert": BERT,
    "data2vec-text": BERT,
    "electra": BERT | {"embedding_size": 40},
    "ernie": BERT | {"use_task_id": True},
    "megatron-bert": BERT,
    "rembert": BERT | {"input_embedding_size": 40, "output_embedding_size": 56},
    "roberta": BERT,
    "roberta-prelayernorm": BERT,
    "roc_bert": BERT
    | {"pronunciation_vocab_size": 20, "pronunciation_embed_dim": 24, "shape_vocab_size": 30, "shape_embed_dim": 32},
    "roformer": BERT | {"embedding_size": 40},
    "xlm-roberta": BERT,
    "xlm-roberta-xl": BERT,
    "xmod": BERT | {"languages": ["en_XX", "de_DE"], "default_language": "en_XX"},
    "bart": BART | PAD,
    "bigbird_pegasus": BART | PAD | {"use_bias": True},
    "blenderbot": BART | PAD,
    "blenderbot-small": BART | PAD,
    "marian": BART | PAD | {"decoder_vocab_size": 96},
    "mbart": BART | PAD,
    "mvp": BART | PAD,
    "pegasus": BART | PAD,
    "plbart": BART | PAD,
    "trocr": {k: v for k, v in BART.items() if "encoder" not in k or "decoder" in k}
    | PAD
    | {"cross_attention_hidden_size": 40},
    "whisper": {k: v for k, v in BART.items() if k != "max_position_embeddings"}
    | PAD
    | {"num_mel_bins": 8, "max_source_positions": 20, "max_target_positions": 32},
    "doge": LLAMA | BIASED | PAD,
    "axk2": LLAMA | MLA | ROUTED | DENSE1 | INDEX | PAD | {"gated_norm_rank": 7},
    "hy_v4": LLAMA
    | MLA
    | ROUTED
    | DENSE1
    | INDEX
    | PAD
    | {"hc_mult": 3, "indexer_types": ["full", "shared", "full", "shared"]},
    "gemma4_text": WIDE
    | SWA
    | TIED
    | PAD
    | {
        "vocab_size_per_layer_input": 80,
        "hidden_size_per_layer_input": 12,
        "per_layer_config": {
            "0": {"head_dim": 14, "num_key_value_heads": 3},
            "3": {"head_dim": 14, "num_key_value_heads": 3},
        },
        "attention_k_eq_v": True,
        "enable_moe_block": True,
        "num_experts": 4,
        "top_k_experts": 2,
        "moe_intermediate_size": 40,
    },
    "gemma4_unified_text": LLAMA
    | SWA
    | TIED
    | PAD
    | {
        "head_dim": 10,
        "num_hidden_layers": 6,
        "layer_types": [
            "full_attention",
            "sliding_attention",
            "sliding_attention",
            "full_attention",
            "sliding_attention",
            "full_attention",
        ],
        "per_layer_config": {"0": {"head_dim": 14}, "3": {"head_dim": 14}, "5": {"head_dim": 14}},
        "num_kv_shared_layers": 2,
        "use_double_wide_mlp": True,
    },
    "gemma3n_text": WIDE
    | SWA
    | TIED
    | PAD
    | {
        "vocab_size_per_layer_input": 80,
        "hidden_size_per_layer_input": 12,
        "num_kv_shared_layers": 1,
        "layer_types": ["full_attention", "sliding_attention", "sliding_attention", "sliding_attention"],
        "altup_num_inputs": 3,
        "laurel_rank": 5,
        "intermediate_size": [104, 104, 88, 88],
        "activation_sparsity_pattern": [0.0, 0.0, 0.0, 0.0],
    },
    "hrm_text": {k: v for k, v in WIDE.items() if k not in ("num_key_value_heads", "num_hidden_layers")}
    | PAD
    | {"num_layers_per_stack": 2, "H_cycles": 2, "L_cycles": 3, "L_bp_cycles": [2], "head_dim": 12},
    "jetmoe": {k: v for k, v in LLAMA.items() if k != "num_attention_heads"}
    | PAD
    | {"num_local_experts": 4, "num_experts_per_tok": 2, "kv_channels": 10},
    "xlm": {
        "vocab_size": 96,
        "emb_dim": 72,
        "n_layers": 3,
        "n_heads": 6,
        "max_position_embeddings": 64,
        "n_langs": 3,
        "causal": True,
        "pad_index": 0,
        "pad_token_id": 0,
    },
    "dory": WIDE
    | PAD
    | {
        "num_hidden_layers": 8,
        "sliding_window": 5,
        "n_input_layers": 2,
        "n_recurrent_layers": 4,
        "n_output_layers": 2,
        "n_recurrent_loops": 3,
        "layer_types": ["sliding_attention", "mlp", "full_attention", "mlp"] * 2,
    },
    "xlnet": {"vocab_size": 96, "d_model": 72, "n_layer": 3, "n_head": 6, "d_inner": 104, "d_head": 12, **PAD},
    "prophetnet": {
        "vocab_size": 96,
        "hidden_size": 72,
        "decoder_ffn_dim": 88,
        "num_decoder_layers": 2,
        "num_encoder_layers": 3,
        "num_decoder_attention_heads": 4,
        "num_encoder_attention_heads": 6,
        "max_position_embeddings": 64,
        "ngram": 3,
        "num_buckets": 8,
        **PAD,
    },
    "cohere_compass_text": LLAMA
    | SWA
    | TIED
    | AB
    | PAD
    | {
        "rope_parameters": {"full_attention": ROPE, "sliding_attention": ROPE},
    },
}

SMALL["emu3"] = {"text_config": LLAMA | PAD}

# Defaults that transformers itself cannot build or run, and what they lack; and those that only a CPU can run, cut.
COMPLETED: dict[str, dict[str, Any]] = {
    "big_bird": {"attention_type": "original_full"},
    "blenderbot": {"decoder_layers": 2},  # its cache is as long as the encoder is deep
    "dots1": {"moe_intermediate_size": 1408, "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6},
    "hunyuan_v1_dense": {"head_dim": 128},
    "hunyuan_v1_moe": {"head_dim": 128},
    "jetmoe": {"num_hidden_layers": 1, "hidden_size": 256, "intermediate_size": 352, "kv_channels": 16},
    "openai-gpt": {"n_layer": 3},
    "cohere_compass_text": {
        "num_hidden_layers": 4,
        "num_key_value_heads": 8,
        "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1e4}},
    },
    "xlm": {"n_layers": 2, "causal": True},
    "xlnet": {"n_layer": 2},
    "xmod": {"default_language": "en_XX", "num_hidden_layers": 2},
}
