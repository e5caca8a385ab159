package ui

import (
	"hash/fnv"
	"html/template"
	"maps"
	"net/url"
	"strconv"

	"github.com/go-chi/chi/v5"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/ui/client"
	"github.com/holdfast-jobs/holdfast/api/ui/snapshot"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// deadLetters is what the page shows.
type deadLetters struct {
	JobType, Tenant string
	Groups          []deadGroup
	// More says that the API has left some groups out.
	More bool
	// Hidden counts the groups that it has sent and the page does not show, and All leads to them.
	Hidden int
	All    string
	snapshot.Figures[*v1.DeadLetterGroups]
	// Denied says why nothing can be requeued; empty if it can.
	Denied string
}

// deadGroup is jobs that died of the same error.
type deadGroup struct {
	v1.DeadLetterGroup
	// Key names it on the page.
	Key string
	// Jobs is their number in words.
	Jobs string
	// List leads to the jobs, and Requeue to an operation on them; empty while their fingerprint is
	// not known.
	List, Requeue string
}

// maxShownGroups keeps a page light that is read again every few seconds.
const maxShownGroups = 100

func (s *site) deadLetters(r chi.Router) {
	r.Get("/dead-letters", s.serve(showDeadLetters))
}

func showDeadLetters(v *visit) (answer, error) {
	query, shown := url.Values{}, deadLetters{JobType: v.query("jobType"), Tenant: v.query("tenant"), Denied: v.denied(guard.Operate)}
	for name, value := range map[string]string{"jobType": shown.JobType, "tenant": shown.Tenant} {
		if value != "" {
			query.Set(name, value)
		}
	}
	found, err := counted[v1.DeadLetterGroups](v, client.Path("dead-letter", "groups"), query)
	if err != nil {
		return nil, err
	}
	if shown.Figures = found; found.Pending() {
		return view{Template: "deadletters", Title: "Dead letters", Data: shown}, nil
	}
	groups := found.Value.Groups
	shown.More = found.Value.More
	if len(groups) > maxShownGroups && v.query("all") == "" {
		shown.Hidden = len(groups) - maxShownGroups
		groups = groups[:maxShownGroups]
		all := maps.Clone(query) // The reading may still use it.
		all.Set("all", "true")
		shown.All = Root + "/dead-letters?" + all.Encode()
	}
	for _, group := range groups {
		shown.Groups = append(shown.Groups, groupOf(group, shown.Tenant))
	}
	return view{Template: "deadletters", Title: "Dead letters", Data: shown}, nil
}

// Spark is a small picture of when the latest jobs have died.
func (g deadGroup) Spark() template.HTML {
	return bars(count(total(g.Recent))+" of the latest died in the last 24 hours", g.Recent, g.Recent)
}

// digest is a short word for a text of any characters.
func digest(text string) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(text)) // It never fails.
	return strconv.FormatUint(sum.Sum64(), 36)
}

func groupOf(g v1.DeadLetterGroup, tenant string) deadGroup {
	shown := deadGroup{DeadLetterGroup: g, Key: g.Fingerprint + "-" + digest(g.JobType+"\x00"+g.ErrorCode), Jobs: jobsOf(int64(g.Count), g.More)}
	if g.Fingerprint == "" {
		return shown
	}
	query := url.Values{"state": {"dead"}, "jobType": {g.JobType}, "fingerprint": {g.Fingerprint}}
	if g.ErrorCode != "" {
		query.Set("errorCode", g.ErrorCode)
	}
	if tenant != "" {
		query.Set("tenant", tenant)
	}
	shown.List = jobsPath(query)
	query.Set("action", "requeue")
	shown.Requeue = Root + "/operations/new?" + query.Encode()
	return shown
}
