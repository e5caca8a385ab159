package runtime

import (
	"context"
	"log/slog"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/metrics"
)

// saveReports writes what attempts have reported, one report each.
func (p *path) saveReports(reports []job.Report) {
	var values, logs []job.Report
	for _, r := range reports {
		if r.Progress != nil || r.Checkpoint != nil {
			values = append(values, r)
		}
		if r.Log != nil {
			logs = append(logs, r)
		}
	}
	p.save(values, "progress or checkpoint could not be saved", p.store.SaveProgress)
	p.save(logs, "log lines could not be saved", p.store.SaveLogs)
}

// save writes the reports, one by one when the database cannot store one of them. A
// lost lease shows when the attempt is settled.
func (p *path) save(reports []job.Report, failed string, verb func(context.Context, []job.Report) ([]job.Lease, error)) {
	if len(reports) == 0 {
		return
	}
	err := p.untilAnswered(metrics.OpReport, len(reports), func(ctx context.Context) error {
		_, err := verb(ctx, reports)
		return err
	})
	switch {
	case err == nil:
	case len(reports) == 1:
		p.cfg.Log.Warn(failed, slog.String("job_id", reports[0].JobID.String()), slog.Any("error", err))
	default:
		for i := range reports {
			p.save(reports[i:i+1], failed, verb)
		}
	}
}
