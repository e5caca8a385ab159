-- What nobody was told of: ends that have been in the follower's inbox for longer than $1,
-- with an empty reason, and ends that could not be announced to callback URLs, by reason. Those
-- of given_up are not tried again.
-- Clock: now().
-- Index: none; both are read whole, and usually empty.
select count(*) as ends, now() - min(at) as waited, '' as reason, false as given_up
from ends
where at < now() - $1::interval
having count(*) > 0
union all
select count(*), now() - min(at), reason, given_up_at is not null
from undelivered
group by reason, given_up_at is not null
order by waited desc;
