"""JetStream: typed streams, consumers, key-value buckets, object stores and their administration."""
