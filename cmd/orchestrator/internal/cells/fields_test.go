package cells

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// example is a value of the type that is not zero.
func example(t *testing.T, of reflect.Type) reflect.Value {
	t.Helper()
	made := reflect.New(of).Elem()
	switch of.Kind() {
	case reflect.Bool:
		made.SetBool(true)
	case reflect.Int, reflect.Int16, reflect.Int32, reflect.Int64:
		made.SetInt(2)
	case reflect.Uint8:
		made.SetUint(2)
	case reflect.Float64:
		made.SetFloat(2)
	case reflect.String:
		made.SetString("x")
	case reflect.Pointer:
		made.Set(reflect.New(of.Elem()))
		made.Elem().Set(example(t, of.Elem()))
	case reflect.Slice:
		made.Set(reflect.Append(made, example(t, of.Elem())))
	case reflect.Array:
		made.Index(0).Set(example(t, of.Elem()))
	case reflect.Map:
		made.Set(reflect.MakeMap(of))
		made.SetMapIndex(example(t, of.Key()), example(t, of.Elem()))
	case reflect.Struct:
		if of == reflect.TypeFor[time.Time]() {
			return reflect.ValueOf(time.Date(2026, 2, 20, 12, 0, 0, 0, time.UTC))
		}
		for i := range of.NumField() {
			made.Field(i).Set(example(t, of.Field(i).Type))
		}
	default:
		require.Fail(t, "add the kind", of.Kind())
	}
	return made
}

// notLost fails for each field that only the second server has, and that the merge of both
// leaves out, but for those that the test names.
func notLost[T any](t *testing.T, merge func(first, second T) T, but ...string) {
	t.Helper()
	of := reflect.TypeFor[T]()
	for i := range of.NumField() {
		name := of.Field(i).Name
		var first, second T
		reflect.ValueOf(&second).Elem().Field(i).Set(example(t, of.Field(i).Type))
		got := reflect.ValueOf(merge(first, second)).Field(i)
		lost := got.IsZero() || got.Kind() == reflect.Slice && got.Len() == 0
		require.Equal(t, slices.Contains(but, name), lost, "%s.%s: say how it is merged, or that it is not", of, name)
	}
}

// A new field would otherwise be that of the first cell alone, and look like all of them.
func TestNoFigureOfACellIsLeftOut(t *testing.T) {
	notLost(t, func(a, b v1.Queue) v1.Queue { // a type is served if every cell serves it
		b.JobType = a.JobType
		return addQueues([][]v1.Queue{{a}, {b}})[0]
	}, "JobType", "Served")
	notLost(t, func(a, b v1.QueueList) v1.QueueList { return queues([]v1.QueueList{a, b}) }, "Unserved") // it follows from the queues
	notLost(t, func(a, b v1.Metrics) v1.Metrics { return metrics([]v1.Metrics{a, b}) })
	notLost(t, addRecent, "SinceMinutes")                                                                                        // the same for all, as are the window and its slots
	notLost(t, func(a, b v1.Series) v1.Series { return series([]v1.Series{a, b}) }, "Window", "SlotSeconds", "JobType", "Slots") // slots have begun in all cells: see below
	notLost(t, func(a, b v1.SeriesSlot) v1.SeriesSlot {
		b.Start = a.Start
		return series([]v1.Series{{Slots: []v1.SeriesSlot{a}}, {Slots: []v1.SeriesSlot{b}}}).Slots[0]
	}, "Start")
	notLost(t, func(a, b v1.SeriesLatency) v1.SeriesLatency { return *worse(&a, &b) })
	notLost(t, func(a, b v1.WorkerList) v1.WorkerList { return workers([]v1.WorkerList{a, b}) })
	notLost(t, func(a, b v1.JobTypeList) v1.JobTypeList { return types([]v1.JobTypeList{a, b}) })
	notLost(t, func(a, b v1.Lookup) v1.Lookup { return lookups([]v1.Lookup{a, b}) })
	notLost(t, func(a, b v1.DeadLetterGroups) v1.DeadLetterGroups { return groups([]v1.DeadLetterGroups{a, b}) })
	notLost(t, func(a, b v1.DeadLetterGroup) v1.DeadLetterGroup { // the first three name the group; its message is the latest one
		a.FirstDeadAt, b.JobType, b.ErrorCode, b.Fingerprint = time.Now(), "", "", ""
		a.LastDeadAt = a.LastDeadAt.Add(time.Nanosecond)
		return groups([]v1.DeadLetterGroups{{Groups: []v1.DeadLetterGroup{a}}, {Groups: []v1.DeadLetterGroup{b}}}).Groups[0]
	}, "JobType", "ErrorCode", "Fingerprint", "Message")
}
