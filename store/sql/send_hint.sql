-- Notify every listener on channel $1, about $2. Alone in its transaction: a commit that
-- notifies takes a lock that all such commits share.
select pg_notify($1, $2);
