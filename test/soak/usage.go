package main

import (
	"context"
	"fmt"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/procfs"

	"github.com/holdfast-jobs/holdfast/test/rig"
)

// figure is something that must not grow.
type figure struct {
	name string
	// bytes says that it is a size.
	bytes bool
	// atRest says that the least counts that was measured after a step, rather than the peak
	// during it.
	atRest bool
	// needsTime says that it grows until the first jobs have been deleted.
	needsTime bool
	// share and room are how much more the second half of the run may have than the first.
	share, room float64
}

const mebi = 1 << 20

// The figures, in the order of the table.
const (
	orchestratorMemory = iota
	orchestratorHeap
	orchestratorGoroutines
	orchestratorFiles
	pluginMemory
	pluginFiles
	pluginProcesses
	serverMemory
	serverFiles
	connections
	tables
	indexes
)

// Counts at rest have little reason to vary. Peaks of memory depend on when garbage is
// collected, and sizes on when vacuum comes. A peak of all plugins would also count processes
// that come and go with crashes. PostgreSQL's connections keep the files open that they have
// used, until each has used all tables and indexes.
var figures = []figure{
	orchestratorMemory:     {name: "orchestrator MB", bytes: true, share: 0.15, room: 16 * mebi},
	orchestratorHeap:       {name: "heap MB", bytes: true, share: 0.15, room: 16 * mebi},
	orchestratorGoroutines: {name: "goroutines", atRest: true, share: 0.05, room: 10},
	orchestratorFiles:      {name: "files", atRest: true, share: 0.05, room: 5},
	pluginMemory:           {name: "plugins MB", bytes: true, atRest: true, share: 0.15, room: 16 * mebi},
	pluginFiles:            {name: "plugins' files", atRest: true, share: 0.05, room: 5},
	pluginProcesses:        {name: "plugins' processes", atRest: true},
	serverMemory:           {name: "PostgreSQL MB", bytes: true, atRest: true, share: 0.15, room: 32 * mebi},
	serverFiles:            {name: "PostgreSQL's files", atRest: true, share: 0.5, room: 50},
	connections:            {name: "connections", atRest: true, room: 3},
	tables:                 {name: "tables MB", bytes: true, needsTime: true, share: 0.25, room: 16 * mebi},
	indexes:                {name: "indexes MB", bytes: true, needsTime: true, share: 0.25, room: 16 * mebi},
}

// measure returns all figures as they are now.
func (s *soak) measure(ctx context.Context) ([]float64, error) {
	values := make([]float64, len(figures))
	found, err := s.metrics(ctx)
	if err != nil {
		return nil, err
	}
	values[orchestratorHeap] = sum(found["go_memstats_heap_alloc_bytes"], "", "")
	values[orchestratorGoroutines] = sum(found["go_goroutines"], "", "")
	own, err := usageOf(s.orchestrator.PID())
	if err != nil {
		return nil, err
	}
	values[orchestratorMemory], values[orchestratorFiles] = own.resident, own.files
	for _, p := range rig.Descendants(s.orchestrator.PID()) {
		if used, err := usageOf(p.PID); err == nil { // it may have ended meanwhile
			values[pluginMemory] += used.resident
			values[pluginFiles] += used.files
			values[pluginProcesses]++
		}
	}
	var backend int
	var counted, tableBytes, indexBytes int64
	if err := s.db.QueryRow(ctx, sizes).Scan(&backend, &counted, &tableBytes, &indexBytes); err != nil {
		return nil, err
	}
	values[connections], values[tables], values[indexes] = float64(counted), float64(tableBytes), float64(indexBytes)
	postmaster, err := rig.Parent(backend)
	if err != nil {
		return nil, err
	}
	for _, p := range rig.Descendants(postmaster) {
		if used, err := usageOf(p.PID); err == nil {
			values[serverMemory] += used.anonymous
			values[serverFiles] += used.files
		}
	}
	return values, nil
}

// sizes leaves out what is kept for longer than a soak takes: slots of latencies for a day, what
// happened to plugins for 30 days, and the audit log.
const sizes = `
	select pg_backend_pid(),
		(select count(*) from pg_stat_activity where application_name like 'holdfast%'),
		sum(pg_table_size(oid))::bigint, sum(pg_indexes_size(oid))::bigint
	from pg_class
	where relkind = 'r' and relnamespace = 'public'::regnamespace
		and relname not in ('latency_slots', 'plugin_events', 'audit_log')`

// used is what a process has, in bytes.
type used struct {
	// resident includes what it shares with others; anonymous does not include the cache that
	// PostgreSQL's processes share.
	resident, anonymous float64
	files               float64
}

func usageOf(pid int) (used, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return used{}, err
	}
	status, err := process.NewStatus()
	if err != nil {
		return used{}, err
	}
	files, err := process.FileDescriptorsLen()
	if err != nil {
		return used{}, err
	}
	return used{resident: float64(status.VmRSS), anonymous: float64(status.RssAnon), files: float64(files)}, nil
}

// metrics reads what the orchestrator says of itself.
func (s *soak) metrics(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.orchestrator.Address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "text/plain")
	request.SetBasicAuth("admin", s.orchestrator.Password)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics: %s", answer.Status)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	return parser.TextToMetricFamilies(answer.Body)
}

// sum adds up the samples that have the label, or all of them without one.
func sum(family *dto.MetricFamily, label, value string) float64 {
	total := 0.0
	for _, sample := range family.GetMetric() {
		matches := label == ""
		for _, pair := range sample.GetLabel() {
			matches = matches || pair.GetName() == label && pair.GetValue() == value
		}
		if matches {
			total += sample.GetGauge().GetValue() + sample.GetCounter().GetValue()
		}
	}
	return total
}
