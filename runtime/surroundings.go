package runtime

import (
	"context"
	"log/slog"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
)

// mostReapIntervals is how many times less often a process of a crowd looks, give or take a tenth.
// They are few, so that survivors soon notice when most of a crowd has vanished.
const mostReapIntervals = 4

// surroundings looks at the other processes, in every process: it counts them, so that they need
// not all do the same; it expires the leases of those that are certainly gone; and it wakes the
// reaper, and whoever reads the job types, if they have something to do.
type surroundings struct {
	cfg   Config
	store Store
	// plugins is nil without the role of a worker.
	plugins Plugins
	pace    *jobs.Pace
	isGone  func(job.Worker) bool
	// lost is raised when there may be attempts to take over.
	lost loop.Signal
	// declared is raised when others may have declared job types.
	declared loop.Signal
	// version is that of the job types when this process looked last.
	version int64
}

func (s *surroundings) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := s.look(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("looking at the other processes failed; trying again", slog.Any("error", err))
		}
		loop.Pause(ctx, s.pace.Stretched(s.role(), s.cfg.reapInterval(), mostReapIntervals))
	}
}

// role is the one of which there must be a crowd for this process to look less often: those that
// maintain see expired leases.
func (s *surroundings) role() job.Role {
	if s.cfg.Worker.Roles.Has(job.RoleMaintenance) {
		return job.RoleMaintenance
	}
	return job.RoleAPI // any
}

// look makes room for those who are alive. If it fails, this process takes no turns.
func (s *surroundings) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	seen, err := s.store.Surroundings(ctx, s.cfg.Worker.Host, s.cfg.Worker.ID)
	if err != nil {
		s.pace.Know(job.Crowd{})
		s.lost.Raise()
		return err
	}
	s.pace.Know(job.CrowdOf(seen.Live, s.types()))
	if seen.TypesVersion != s.version {
		s.version = seen.TypesVersion
		s.declared.Raise()
	}
	expired, err := s.expireTheGone(ctx, seen.Neighbours)
	if seen.LeaseExpired || expired > 0 { // only now, or what the reaper has taken over would be expired again
		s.lost.Raise()
	}
	return err
}

func (s *surroundings) types() (types []string) {
	if s.plugins == nil {
		return nil
	}
	for _, pool := range s.plugins.Pools() {
		types = append(types, pool.Types...)
	}
	return types
}

// expireTheGone ends the leases of workers on this system whose process is certainly
// gone, so that their jobs do not wait for the leases to run out. Every process looks after
// those on its system, as it can check their process ids, and reapers may be on other systems.
// It returns how many leases those were.
func (s *surroundings) expireTheGone(ctx context.Context, neighbours []job.Worker) (leases int, err error) {
	var gone []string
	for _, worker := range neighbours {
		if s.isGone(worker) {
			gone = append(gone, worker.ID)
		}
	}
	if len(gone) == 0 {
		return 0, nil
	}
	leases, err = s.store.ExpireWorkers(ctx, gone)
	if err != nil {
		return 0, err
	}
	s.cfg.Log.Warn("workers ended without signing off", slog.Any("workers", gone), slog.Int("leases", leases))
	return leases, nil
}
