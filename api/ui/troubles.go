package ui

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// oldSnapshot is how long the database may be kept from cleaning up.
	oldSnapshot = 15 * time.Minute
	// longSilent is when a silent worker is no longer news.
	longSilent = 24 * time.Hour
)

// trouble is something that is wrong, from figures that are read anyway.
type trouble struct {
	// Class is problem or warning.
	Class, Text, Path string
}

// troubles lists what is wrong, problems first.
func troubles(metrics *v1.Metrics, workers []v1.Worker, plugins []v1.Plugin) []trouble {
	found := unserved(metrics.Queues)
	for _, p := range plugins {
		found = append(found, ofPlugin(p)...)
	}
	for _, w := range workers {
		if w.Condition == job.WorkerSilent && metrics.At.Sub(w.LastHeartbeat) < longSilent {
			found = append(found, trouble{"warning", fmt.Sprintf("Worker %s is silent: its last heartbeat was %s ago. Others take over its jobs.",
				w.WorkerID, took(metrics.At.Sub(w.LastHeartbeat).Truncate(time.Second))), "/ui/workers"})
		}
	}
	if len(workers) > 0 && !slices.ContainsFunc(workers, func(w v1.Worker) bool { return w.Condition == job.WorkerAlive }) {
		found = append(found, trouble{"problem", "No worker takes jobs.", "/ui/workers"})
	}
	if age := time.Duration(metrics.OldestSnapshotSeconds * float64(time.Second)); age > oldSnapshot {
		found = append(found, trouble{"warning", "A transaction or replication slot has kept the database from cleaning up for " +
			took(age.Truncate(time.Second)) + ". Jobs become slower the longer it lasts.", "/ui/health"})
	}
	slices.SortStableFunc(found, func(a, b trouble) int { return strings.Compare(a.Class, b.Class) })
	return found
}

func unserved(queues []v1.Queue) (found []trouble) {
	for _, queue := range v1.QueueListOf(queues).Unserved {
		found = append(found, trouble{"problem", "No live worker has a handler for " + queue + ".", "/ui/types/" + url.PathEscape(queue)})
	}
	for _, queue := range queues {
		if queue.Paused {
			found = append(found, trouble{"warning", queue.JobType + " is paused.", "/ui/types/" + url.PathEscape(queue.JobType)})
		}
	}
	return found
}

func ofPlugin(p v1.Plugin) (found []trouble) {
	path := "/ui/plugins"
	if p.State == job.PluginBroken {
		found = append(found, trouble{"problem", "Plugin " + p.Name + " is broken. " + sentence(p.LastError), path})
	}
	if swap := p.LastSwap; swap != nil && (swap.Result == job.SwapRolledBack || swap.Result == job.SwapRefused) {
		word := map[job.SwapResult]string{job.SwapRolledBack: "was rolled back", job.SwapRefused: "was refused"}[swap.Result]
		found = append(found, trouble{"warning", fmt.Sprintf("Version %s of plugin %s %s. %s", swap.To.Version, p.Name, word, sentence(swap.Reason)), path})
	}
	return found
}
