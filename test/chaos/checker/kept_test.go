package main

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// worker is the one that all leases are of.
const worker = "w/1"

// alive changes the worker's row.
func (m *maker) alive(until history.Nanos) history.Change {
	return m.write("workers", worker, history.Row{"worker_id": worker, "alive_until": text(until)})
}

// lease changes whether the lease of the job is kept, and its own expires_at.
func (m *maker) lease(job, kept string, expires history.Nanos) history.Change {
	row := maps.Clone(m.tables["leases"][job])
	row["kept"], row["expires_at"] = kept, text(expires)
	return m.write("leases", job, row)
}

// beat is a heartbeat: it renews all kept leases, and those of the jobs are kept from now on.
func (m *maker) beat(jobs ...string) {
	at := m.now + tick // when it is committed
	changes := []history.Change{m.alive(at + history.Nanos(leaseFor))}
	for _, job := range jobs {
		changes = append(changes, m.lease(job, "t", at+history.Nanos(24*time.Hour)))
	}
	m.commit(changes...)
}

// held makes a job whose handler has begun, and whose lease is kept.
func (m *maker) held() string {
	job := m.submit("GOOD", "", history.OK)
	m.claim(job)
	m.handler(job, "", history.Began)
	m.beat(job)
	return job
}

// done lets the handler of a job go on to its good end.
func (m *maker) done(job string) {
	m.handler(job, history.Succeeds, history.Done, history.Ended)
	m.end(job, "succeeded", "", 1)
}

// lose ends the attempt of a job whose lease was taken over, and runs the job once more.
func (m *maker) lose(job string) {
	m.end(job, "retry", "lease_expired", 1)
	m.again(job)
}

// keep runs jobs whose leases are kept.
func (m *maker) keep(j *jobs) {
	j.kept = m.held()
	for range 4 {
		m.wait(6)
		m.beat()
	}
	m.done(j.kept)

	j.expired = m.held()
	m.reap(j.expired)
	m.lose(j.expired)

	m.beat() // nothing is kept, although the worker was silent
	late := m.held()
	m.wait(12)
	expired, _ := m.tables["workers"][worker].Time("alive_until")
	m.commit(m.alive(m.now+tick+history.Nanos(leaseFor)), m.lease(late, "f", expired))
	m.take(late)
	m.lose(late)

	for _, silent := range []int{1, 30} {
		left := m.held()
		m.wait(silent)
		until, _ := m.tables["workers"][worker].Time("alive_until")
		ended := m.now
		m.commit(m.alive(min(until, ended)), m.lease(left, "f", ended))
		m.commit(m.lease(left, "f", ended)) // as for a cancellation
		m.take(left)
		m.lose(left)
		m.beat()
	}

	dropped, other := m.held(), m.held()
	m.wait(2)
	m.commit(m.alive(m.now+tick+history.Nanos(leaseFor)), m.lease(dropped, "f", m.now))
	m.take(dropped)
	m.end(dropped, "retry", "lease_expired", 1)
	m.done(other)
	m.again(dropped)
}

func TestAKeptLeaseExpiresWithItsWorker(t *testing.T) {
	r, j := good()
	require.NoError(t, r.replay())
	first := make(map[string]*lease)
	for _, l := range r.leases {
		if first[l.job] == nil {
			first[l.job] = l
		}
	}
	lasted := func(job string) time.Duration { return time.Duration(first[job].expires - first[job].claimed) }
	begun := 2 * time.Duration(tick) // from the claim to the first heartbeat
	require.Equal(t, leaseFor, lasted(j.plain[0]))
	require.Equal(t, begun+4*7*time.Duration(tick)+leaseFor, lasted(j.kept))
	require.Equal(t, begun+leaseFor, lasted(j.expired))
	require.Less(t, first[j.expired].expires, first[j.expired].taken)
	require.Equal(t, begun+9*time.Duration(tick)+leaseFor, lasted(j.across), "what only an old primary saw does not count")
}

// What looks strange about kept leases and workers, but is allowed.
var keptMay = []control{
	{name: "workers come and go, and keep no lease", more: func(m *maker, _ jobs) {
		m.wait(100)
		job := m.submit("GOOD", "", history.OK)
		m.claim(job)
		m.handler(job, "", history.Began)
		m.beat() // it was silent for long
		m.commit(m.alive(m.now))
		m.commit(m.write("workers", worker, nil))
		m.beat()
		m.done(job)
	}},
	{name: "a heartbeat is decoded again", spoil: func(r *record, _ jobs) {
		at := slices.IndexFunc(r.witness, func(c history.Change) bool { return c.Table == "workers" && c.Op == history.Update })
		r.witness = slices.Insert(r.witness, at+3, r.witness[at])
	}},
	{name: "the lease of a worker that nobody knows is taken over at once", more: func(m *maker, _ jobs) {
		job := m.held()
		m.commit(m.write("workers", worker, nil))
		m.take(job)
		m.lose(job)
	}},
	{name: "a new primary does not know the worker of a kept lease", more: func(m *maker, _ jobs) {
		lost, job := m.submit("GOOD", "", history.OK), m.held()
		delete(m.tables["workers"], worker) // which nobody saw
		m.failOver(lost)
		m.take(job)
		m.lose(job)
		m.success(lost)
	}},
	{name: "nobody sees heartbeats before a failover", more: func(m *maker, _ jobs) {
		lost, job := m.submit("GOOD", "", history.OK), m.held()
		m.wait(20)
		m.unseen(job, "t", m.now+history.Nanos(leaseFor))
		m.failOver(lost)
		m.beat()
		m.done(job)
		m.success(lost)
	}},
	{name: "nor that the last of them came too late", more: func(m *maker, _ jobs) {
		lost, job := m.submit("GOOD", "", history.OK), m.held()
		m.wait(8)
		m.unseen(job, "f", m.now+history.Nanos(leaseFor))
		m.failOver(lost)
		m.handler(job, history.Succeeds, history.Done, history.Ended)
		m.take(job)
		m.lose(job)
		m.success(lost)
	}},
}

// unseen changes until when the worker is alive, and the lease of a job, without a witness.
func (m *maker) unseen(job, kept string, until history.Nanos) {
	m.alive(until)
	m.lease(job, kept, until)
}

var keptControls = []control{
	{name: "a worker that was silent for a lease keeps its leases", by: "V6", more: func(m *maker, _ jobs) {
		job := m.held()
		m.wait(20)
		m.beat()
		m.done(job)
	}},
	{name: "it does so at the next primary", by: "V6", more: func(m *maker, _ jobs) {
		lost := m.submit("GOOD", "", history.OK)
		job := m.held()
		m.failOver(lost)
		m.wait(20)
		m.beat()
		m.done(job)
		m.success(lost)
	}},
	{name: "a worker that has signed off keeps a lease", by: "V6", more: func(m *maker, _ jobs) {
		job := m.held()
		m.commit(m.alive(m.now))
		m.wait(3)
		m.beat()
		m.done(job)
	}},
	{name: "a lease that has expired is kept from then on", by: "V6", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.claim(job)
		m.handler(job, "", history.Began)
		m.wait(20)
		m.beat(job)
		m.done(job)
	}},
	{name: "a kept lease that has expired is renewed by itself", by: "V6", more: func(m *maker, _ jobs) {
		job := m.held()
		m.handler(job, history.Succeeds, history.Done, history.Ended)
		m.wait(20)
		m.commit(m.lease(job, "f", m.now+history.Nanos(leaseFor)))
		m.end(job, "succeeded", "", 1)
	}},
	{name: "a kept lease is taken over while its worker is alive", by: "V6", more: func(m *maker, _ jobs) {
		job := m.held()
		m.wait(6)
		m.beat()
		m.wait(6) // longer than the first heartbeat had said
		m.take(job)
		m.lose(job)
	}},
	{name: "a handler goes on after its kept lease has expired, and nobody follows", by: "V6", more: func(m *maker, _ jobs) {
		m.wait(200)
		job := m.held()
		m.handler(job, history.Permanent, history.Ended)
		m.end(job, "dead", "permanent", 1)
		m.effects[len(m.effects)-1].At += history.Nanos(10 * time.Second)
	}},
	{name: "a handler goes on until its dead worker is signed off", by: "V6", more: func(m *maker, _ jobs) {
		m.wait(200)
		job := m.held()
		m.wait(30)
		m.handler(job, history.Permanent, history.Ended)
		m.commit(m.lease(job, "f", m.now))
		m.end(job, "dead", "permanent", 1)
	}},
}
