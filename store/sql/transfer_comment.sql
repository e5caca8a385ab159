-- The statement that makes $1 the comment on the ledger: comment on takes no parameters.
-- Clock: none.
-- Index: none.
select format('comment on table jobs is %L', $1::text) as statement;
