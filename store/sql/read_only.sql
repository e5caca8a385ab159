-- Whether the session takes no writes: the server is a standby, or was set read-only.
-- Index: none; a setting.
select current_setting('transaction_read_only')::boolean;
