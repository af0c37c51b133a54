"""CURATe Board: does an assistant keep a user safe who has told it what endangers them?"""
