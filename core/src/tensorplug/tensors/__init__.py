"""What users do with tensors: operators, assignment, variables, trees, interchange, files."""
