PREFIX="keras:"
def read_keras_model(t): raise NotImplementedError
