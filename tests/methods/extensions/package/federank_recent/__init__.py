"""What is new is what people like: a method and a metric from outside."""
