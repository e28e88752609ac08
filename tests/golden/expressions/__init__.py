"""Cases written as expressions: a module has SETUP and a list CASES; their answers are recorded under the suite's name.

A case is Python statements, `; ` between them, with `torch` and the names of SETUP; the last one's value is the answer.
Of an error the class and the first sentence of the text count; a case that begins with "!" compares its class alone.
"""
