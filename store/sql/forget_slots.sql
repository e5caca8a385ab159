-- Forget gates of which nothing is used, and whose rate has all its starts again after $1.
-- Clock: now().
-- Locks: their rows. The caller is the one who admits.
-- Index: none, it reads all slots.
delete from slots where used = 0 and wake_at is null and (tokens_at is null or tokens_at < now() - $1::interval);
