"""The model adapter for Amazon Bedrock: Claude, Nova, Llama, Mistral and others in an AWS account."""
