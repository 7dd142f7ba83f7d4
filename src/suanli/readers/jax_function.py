PREFIX="jax:"
def read_jax_function(t): raise NotImplementedError
