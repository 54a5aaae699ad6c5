"""`federank audit`: the command and the report it prints. Calls the audit; decides nothing about attacks itself."""
