package cells

import (
	"cmp"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// merged are the paths whose answers can be merged. Counts are added up. What cannot be, such
// as averages and percentiles, is that of the worst cell.
var merged = map[string]merge{
	"/jobs":               pages("jobs", byID),
	"/debug/jobs":         pages("jobs", byID),
	"/workflows":          pages("workflows", byID),
	"/dead-letter":        pages("deadLetters", byDeath),
	"/dead-letter/groups": added(groups),
	"/debug/jobs/lookup":  added(lookups),
	"/debug/queues":       added(queues),
	"/debug/series":       added(series),
	"/debug/workers":      added(workers),
	"/job-types":          added(types),
	"/metrics":            added(metrics),
}

// forPages are such paths that only pages ask for.
var forPages = map[string]merge{
	"/debug/jobs/count": added(jobCounts),
	"/workflows/count":  added(workflowCounts),
	"/debug/operations": added(operations),
	"/debug/plugins":    pluginsByCell,
}

// declared are paths of what a handler says of its job type, wherever it runs.
var declared = regexp.MustCompile(`^/job-types/[^/]+(?:/schema)?$`)

// added is the merge of answers that are decoded.
func added[T any](add func([]T) T) merge {
	return func(t *Transport, r *http.Request) (any, error) {
		all, err := every[T](t, r)
		if err != nil {
			return nil, err
		}
		said := make([]T, len(all))
		for i, one := range all {
			said[i] = one.said
		}
		return add(said), nil
	}
}

func jobCounts(all []v1.JobCount) (sum v1.JobCount) {
	for _, one := range all {
		sum.Count, sum.More = sum.Count+one.Count, sum.More || one.More
	}
	return sum
}

func workflowCounts(all []v1.WorkflowCount) (sum v1.WorkflowCount) {
	for _, one := range all {
		sum.Count, sum.More = sum.Count+one.Count, sum.More || one.More
	}
	return sum
}

// maxOperations is the API's own limit for the list.
const maxOperations = 1000

func operations(all []v1.OperationList) v1.OperationList {
	list := v1.OperationList{Operations: []v1.Operation{}}
	for _, one := range all {
		list.Operations = append(list.Operations, one.Operations...)
	}
	slices.SortStableFunc(list.Operations, func(a, b v1.Operation) int {
		return strings.Compare(b.OperationID.String(), a.OperationID.String())
	})
	list.Operations = list.Operations[:min(len(list.Operations), maxOperations)]
	return list
}

// pluginsByCell are those of the orchestrators that are asked, named with their cell.
func pluginsByCell(t *Transport, r *http.Request) (any, error) {
	all, err := every[v1.PluginList](t, r)
	if err != nil {
		return nil, err
	}
	list := v1.PluginList{Plugins: []v1.Plugin{}}
	for _, one := range all {
		for _, p := range one.said.Plugins {
			p.Name += " of cell " + one.server.name()
			list.Plugins = append(list.Plugins, p)
		}
	}
	return list, nil
}

func queues(all []v1.QueueList) v1.QueueList {
	lists := make([][]v1.Queue, len(all))
	for i, list := range all {
		lists[i] = list.Queues
	}
	return v1.QueueListOf(addQueues(lists))
}

// addQueues adds the queues of each type up. A type is served if it is in every cell that has
// it, and paused if it is in one.
func addQueues(lists [][]v1.Queue) []v1.Queue {
	byType := make(map[string]v1.Queue)
	for _, q := range slices.Concat(lists...) {
		sum, found := byType[q.JobType]
		if !found {
			byType[q.JobType] = q
			continue
		}
		sum.Queued, sum.Scheduled, sum.Held = sum.Queued+q.Queued, sum.Scheduled+q.Scheduled, sum.Held+q.Held
		sum.Retrying, sum.Running, sum.Dead = sum.Retrying+q.Retrying, sum.Running+q.Running, sum.Dead+q.Dead
		sum.OldestQueuedSeconds = max(sum.OldestQueuedSeconds, q.OldestQueuedSeconds)
		sum.Served, sum.Paused = sum.Served && q.Served, sum.Paused || q.Paused
		sum.Waiting = plus(maps.Clone(sum.Waiting), q.Waiting)
		byType[q.JobType] = sum
	}
	return sorted(byType)
}

// plus adds counts up.
func plus[K comparable](sum, more map[K]int64) map[K]int64 {
	if sum == nil {
		sum = make(map[K]int64, len(more))
	}
	for key, n := range more {
		sum[key] += n
	}
	return sum
}

func sorted[T any](byName map[string]T) []T {
	list := make([]T, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		list = append(list, byName[name])
	}
	return list
}

func types(all []v1.JobTypeList) v1.JobTypeList {
	byName := make(map[string]v1.JobType)
	for _, list := range all {
		for _, t := range list.JobTypes {
			if _, found := byName[t.JobType]; !found {
				byName[t.JobType] = t
			}
		}
	}
	return v1.JobTypeList{JobTypes: sorted(byName)}
}

func workers(all []v1.WorkerList) v1.WorkerList {
	list := v1.WorkerList{Workers: []v1.Worker{}}
	for _, one := range all {
		list.Workers = append(list.Workers, one.Workers...)
	}
	return list
}

func lookups(all []v1.Lookup) v1.Lookup {
	found := v1.Lookup{Jobs: []v1.FoundJob{}}
	for _, one := range all {
		found.Jobs, found.More = append(found.Jobs, one.Jobs...), found.More || one.More
		found.Workflow = cmp.Or(found.Workflow, one.Workflow)
	}
	slices.SortStableFunc(found.Jobs, func(a, b v1.FoundJob) int { return strings.Compare(b.JobID.String(), a.JobID.String()) })
	return found
}

func metrics(all []v1.Metrics) v1.Metrics {
	sum := all[0]
	lists := [][]v1.Queue{sum.Queues}
	for _, m := range all[1:] {
		sum.At = later(sum.At, m.At)
		sum.StatusCounts, sum.AttemptDistribution = plus(sum.StatusCounts, m.StatusCounts), plus(sum.AttemptDistribution, m.AttemptDistribution)
		sum.FailuresByJobType = plus(sum.FailuresByJobType, m.FailuresByJobType)
		if sum.ByWorker == nil {
			sum.ByWorker = make(map[string]map[job.State]int64)
		}
		maps.Copy(sum.ByWorker, m.ByWorker)
		if sum.AvgDurationSecondsByJobType == nil {
			sum.AvgDurationSecondsByJobType = make(map[string]float64)
		}
		for name, seconds := range m.AvgDurationSecondsByJobType {
			sum.AvgDurationSecondsByJobType[name] = max(sum.AvgDurationSecondsByJobType[name], seconds)
		}
		sum.ScheduledForRetry += m.ScheduledForRetry
		sum.ProcessedLastMinute += m.ProcessedLastMinute
		sum.AdmissionInbox += m.AdmissionInbox
		sum.OldestSnapshotSeconds = max(sum.OldestSnapshotSeconds, m.OldestSnapshotSeconds)
		sum.SnapshotAgeTransactions = max(sum.SnapshotAgeTransactions, m.SnapshotAgeTransactions)
		sum.Recent = addRecent(sum.Recent, m.Recent)
		lists, sum.Limits = append(lists, m.Queues), append(sum.Limits, m.Limits...)
	}
	sum.Queues = addQueues(lists)
	return sum
}

func addRecent(a, b v1.Recent) v1.Recent {
	return v1.Recent{
		SinceMinutes: a.SinceMinutes, Submitted: a.Submitted + b.Submitted, Succeeded: a.Succeeded + b.Succeeded, Dead: a.Dead + b.Dead,
		Canceled: a.Canceled + b.Canceled, FailedAttempts: a.FailedAttempts + b.FailedAttempts, Requeued: a.Requeued + b.Requeued,
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// series adds up slots that begin at the same time. A slot that has only begun in some cells is
// left out, lest a part look like the whole.
func series(all []v1.Series) v1.Series {
	sum, byStart, cells := all[0], make(map[int64]v1.SeriesSlot), make(map[int64]int)
	sum.Wait, sum.Run = nil, nil
	for _, s := range all {
		sum.At, sum.Wait, sum.Run = later(sum.At, s.At), worse(sum.Wait, s.Wait), worse(sum.Run, s.Run)
		for _, slot := range s.Slots {
			at := slot.Start.UnixNano()
			cells[at]++
			so, found := byStart[at]
			if !found {
				byStart[at] = slot
				continue
			}
			so.Partial = so.Partial || slot.Partial
			so.Submitted, so.Succeeded, so.Retried = so.Submitted+slot.Submitted, so.Succeeded+slot.Succeeded, so.Retried+slot.Retried
			so.Dead, so.Canceled, so.Requeued, so.Open = so.Dead+slot.Dead, so.Canceled+slot.Canceled, so.Requeued+slot.Requeued, so.Open+slot.Open
			so.Wait, so.Run = worse(so.Wait, slot.Wait), worse(so.Run, slot.Run)
			byStart[at] = so
		}
	}
	sum.Slots = sum.Slots[:0:0]
	for _, at := range slices.Sorted(maps.Keys(byStart)) {
		if cells[at] == len(all) {
			sum.Slots = append(sum.Slots, byStart[at])
		}
	}
	sum.JobTypes = seriesTypes(sum.Slots, all)
	return sum
}

// seriesTypes adds up the attempts of each job type, in the slots.
func seriesTypes(slots []v1.SeriesSlot, all []v1.Series) []v1.SeriesType {
	at := make(map[int64]int, len(slots))
	for i, slot := range slots {
		at[slot.Start.UnixNano()] = i
	}
	byType := make(map[string]v1.SeriesType)
	for _, s := range all {
		for _, t := range s.JobTypes {
			sum, found := byType[t.JobType]
			if !found {
				sum = v1.SeriesType{JobType: t.JobType, Ended: make([]int64, len(slots)), Failed: make([]int64, len(slots))}
			}
			for i := range min(len(s.Slots), len(t.Ended), len(t.Failed)) {
				if slot, everywhere := at[s.Slots[i].Start.UnixNano()]; everywhere {
					sum.Ended[slot] += t.Ended[i]
					sum.Failed[slot] += t.Failed[i]
				}
			}
			sum.Run = worse(sum.Run, t.Run)
			byType[t.JobType] = sum
		}
	}
	if len(byType) == 0 {
		return nil
	}
	return sorted(byType)
}

// worse has the attempts of both, and each percentile of the one in which it is higher.
func worse(a, b *v1.SeriesLatency) *v1.SeriesLatency {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return &v1.SeriesLatency{Attempts: a.Attempts + b.Attempts, P50: max(a.P50, b.P50), P95: max(a.P95, b.P95), P99: max(a.P99, b.P99)}
}

// groups adds up the dead letters of a type that have the same error.
func groups(all []v1.DeadLetterGroups) v1.DeadLetterGroups {
	type key struct{ jobType, code, fingerprint string }
	byKey, more := make(map[key]v1.DeadLetterGroup), false
	for _, one := range all {
		more = more || one.More
		for _, g := range one.Groups {
			k := key{g.JobType, g.ErrorCode, g.Fingerprint}
			sum, found := byKey[k]
			if !found {
				byKey[k] = g
				continue
			}
			if g.LastDeadAt.After(sum.LastDeadAt) {
				sum.Message = g.Message
				sum.SampleIDs = slices.Concat(g.SampleIDs, sum.SampleIDs)
			} else {
				sum.SampleIDs = slices.Concat(sum.SampleIDs, g.SampleIDs)
			}
			sum.Count, sum.More = sum.Count+g.Count, sum.More || g.More
			if g.FirstDeadAt.Before(sum.FirstDeadAt) {
				sum.FirstDeadAt = g.FirstDeadAt
			}
			sum.LastDeadAt = later(sum.LastDeadAt, g.LastDeadAt)
			for _, version := range g.Versions {
				if !slices.Contains(sum.Versions, version) {
					sum.Versions = append(sum.Versions, version)
				}
			}
			sum.Recent = addHours(sum.Recent, g.Recent)
			byKey[k] = sum
		}
	}
	list := slices.Collect(maps.Values(byKey))
	slices.SortFunc(list, func(a, b v1.DeadLetterGroup) int {
		return cmp.Or(b.LastDeadAt.Compare(a.LastDeadAt), strings.Compare(a.JobType, b.JobType),
			strings.Compare(a.ErrorCode, b.ErrorCode), strings.Compare(a.Fingerprint, b.Fingerprint))
	})
	return v1.DeadLetterGroups{Groups: append([]v1.DeadLetterGroup{}, list...), More: more}
}

// addHours adds counts of the same hours up. One that is empty has none.
func addHours(a, b []int64) []int64 {
	if len(a) < len(b) {
		a, b = b, a
	}
	sum := slices.Clone(a)
	for i, n := range b {
		sum[i] += n
	}
	return sum
}
