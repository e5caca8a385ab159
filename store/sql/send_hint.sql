-- Tell every listener on channel $1 that something changed. Alone in its
-- transaction: a commit that notifies takes a lock all such commits share.
select pg_notify($1, '');
