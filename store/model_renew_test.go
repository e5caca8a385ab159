package store

import (
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// renew is a heartbeat of a worker, which names any leases, and has forgotten some that it keeps.
func (m *model) renew(t *rapid.T) {
	name := m.someWorker(t)
	chosen := m.someLeases(t)
	if rapid.Bool().Draw(t, "own") { // as in life
		chosen = slices.DeleteFunc(slices.Clone(m.leases), func(l *modelLease) bool { return !l.valid() || l.worker != name })
	}
	asked := make([]job.Lease, len(chosen))
	for i, l := range chosen {
		asked[i] = l.Lease
		if rapid.Bool().Draw(t, "begun") {
			asked[i].Began = job.SinceClaim{Known: true}
		}
	}
	var forgotten []job.LeaseID
	for _, l := range m.keptBy(name) {
		if rapid.IntRange(0, 3).Draw(t, "forgotten") == 0 {
			forgotten = append(forgotten, l.ID)
		}
	}
	want := m.beat(name, chosen, asked, forgotten)
	var held []job.Renewed
	m.again(t, "renew", func(s *Store) (err error) {
		held, err = s.Renew(m.ctx, name, asked, forgotten, aMinute)
		return err
	})
	require.ElementsMatch(m.t, want, held)
}

// keptBy are the kept leases of a worker.
func (m *model) keptBy(name string) []*modelLease {
	var kept []*modelLease
	for _, j := range m.in(job.Running) {
		if j.lease.kept && j.lease.worker == name {
			kept = append(kept, j.lease)
		}
	}
	return kept
}

// beat is a heartbeat: what it returns.
func (m *model) beat(name string, chosen []*modelLease, asked []job.Lease, forgotten []job.LeaseID) []job.Renewed {
	silentSince, silent := m.alive[name], m.alive[name] <= m.now
	m.alive[name] = m.now + 60
	for _, l := range m.keptBy(name) {
		switch {
		case silent:
			l.kept, l.expires = false, silentSince
			m.world.seen.stale("keep")
		case slices.Contains(forgotten, l.ID):
			l.end(m.now)
		}
	}
	var renewed []job.Renewed
	for i, l := range chosen {
		if !l.valid() || m.expired(l) || l.kept && l.worker != name {
			m.world.seen.stale("renew")
			continue
		}
		if l.kept = l.worker == name && (l.kept || asked[i].Began.Known); l.kept {
			l.expires = m.now + 60 + 3600
			continue
		}
		l.expires = m.now + 60
		renewed = append(renewed, job.Renewed{ID: l.ID, CancelRequested: l.of.cancelRequested})
	}
	for _, l := range m.keptBy(name) {
		renewed = append(renewed, job.Renewed{ID: l.ID, CancelRequested: l.of.cancelRequested, Kept: true})
	}
	return renewed
}
