-- Whether the session takes no writes: the server is a standby, or is set so.
-- Index: none; a setting.
select current_setting('transaction_read_only')::boolean;
