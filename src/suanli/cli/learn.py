"""`suanli learn`."""

from __future__ import annotations

from typing import Annotated

import typer

from suanli import api
from suanli.cli.options import Json, Output, Text, text_option
from suanli.cli.run import never, run


def complete_topic(incomplete: str) -> list[str]:
    """Topics that begin so."""
    from suanli.catalog.lessons import TOPICS  # noqa: PLC0415  read only when a name is completed

    return [name for name in TOPICS if name.startswith(incomplete.lower())]


Topic = Annotated[
    str | None,
    typer.Argument(help="backprop, transformer, flops, precision, roofline, mfu, parallel, scaling, goodput, moe, "
                   "cost. Without one: the list.", autocompletion=complete_topic, show_default=False,
                   metavar="[TOPIC]"),
]  # fmt: skip
Lang = Annotated[Text, text_option("--lang", "en (default) or zh.", metavar="LANG")]
Inputs = Annotated[Text, text_option("--inputs", "backprop: x1,x2.", metavar="X,X")]
Targets = Annotated[Text, text_option("--targets", "backprop: t1,t2.", metavar="T,T")]
Weights = Annotated[Text, text_option("--weights", "backprop: w0,w1,…,w7.", metavar="W,…")]
HiddenBias = Annotated[Text, text_option("--hidden-bias", "backprop: bias of h1 and h2.", metavar="B")]
OutputBias = Annotated[Text, text_option("--output-bias", "backprop: bias of y1 and y2.", metavar="B")]
Rate = Annotated[Text, text_option("--rate", "backprop: learning rate.", metavar="RATE")]
Steps = Annotated[Text, text_option("--steps", "backprop: steps of the loss curve. Default 1000.", metavar="N")]
Prompt = Annotated[Text, text_option("--prompt", "transformer: text to start from.")]
NewTokens = Annotated[Text, text_option("--new-tokens", "transformer: tokens to put out. Default 8.", metavar="N")]
Seed = Annotated[Text, text_option("--seed", "transformer: seed of the weights. Default 0.", metavar="N")]


def command(
    topic: Topic = None,
    lang: Lang = None,
    inputs: Inputs = None,
    targets: Targets = None,
    weights: Weights = None,
    hidden_bias: HiddenBias = None,
    output_bias: OutputBias = None,
    rate: Rate = None,
    steps: Steps = None,
    prompt: Prompt = None,
    new_tokens: NewTokens = None,
    seed: Seed = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Work through a lesson in English or 中文, every number of it computed now.

    Example: suanli learn backprop --rate 1
    """
    run(
        lambda: api.learn(
            topic, lang=lang, inputs=inputs, targets=targets, weights=weights, hidden_bias=hidden_bias,
            output_bias=output_bias, rate=rate, steps=steps, prompt=prompt, new_tokens=new_tokens, seed=seed,
        ),
        as_json=json,
        output=output,
        failed=never,
    )  # fmt: skip
