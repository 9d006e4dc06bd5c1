"""The webhook channel of Trunkline."""
