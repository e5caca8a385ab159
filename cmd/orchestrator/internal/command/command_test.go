package command

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestEveryMemberOfASubmissionHasAFlag(t *testing.T) {
	known := []string{"jobType", "payload"} // the argument, and --payload
	for _, m := range members {
		known = append(known, m.member)
	}
	var described []string
	submission := reflect.TypeFor[v1.Submission]()
	for i := range submission.NumField() {
		name, _, _ := strings.Cut(submission.Field(i).Tag.Get("json"), ",")
		described = append(described, name)
	}
	require.ElementsMatch(t, described, known)
}

func TestStatesAndStatusesHaveStyles(t *testing.T) {
	var statuses []string
	for _, state := range job.States() {
		require.NotEmpty(t, styles[string(state)])
		if status := string(state.Status()); !slices.Contains(statuses, status) {
			statuses = append(statuses, status)
		}
	}
	require.NotEmpty(t, statuses)
	for _, status := range statuses {
		require.NotEmpty(t, styles[status])
	}
	for _, condition := range []job.Condition{job.WorkerAlive, job.WorkerDraining, job.WorkerDrained, job.WorkerSilent, job.WorkerStopped} {
		require.NotEmpty(t, styles[string(condition)])
	}
	for _, severity := range []job.Severity{job.Fine, job.Warning, job.Problem} {
		require.NotEmpty(t, styles[string(severity)])
	}
}

func TestFlagsBecomeMembersOfTheSubmission(t *testing.T) {
	f := usual()
	_, _, err := f.run(t, "submit", "SLEEP_JOB", "--payload", ` { "a<b" : [ 1.0 ] } `, "--key", "k", "--priority", "-3",
		"--run-at", "2030-01-01T00:00:00Z", "--delay", "5s", "--max-attempts", "2", "--timeout", "1m", "--tenant", "acme",
		"--tag", "one,two", "--tag", "three", "--hold")
	require.NoError(t, err)
	require.Equal(t, `{"jobType":"SLEEP_JOB","payload":{ "a<b" : [ 1.0 ] },"idempotencyKey":"k","priority":-3,`+
		`"runAt":"2030-01-01T00:00:00Z","delay":"5s","maxAttempts":2,"timeout":"1m","tenant":"acme",`+
		`"tags":["one,two","three"],"hold":true}`, f.sent[0], "the payload to the letter")

	f = usual()
	_, _, err = f.run(t, "submit", "SLEEP_JOB")
	require.NoError(t, err)
	require.Equal(t, `{"jobType":"SLEEP_JOB"}`, f.sent[0], "defaults are the server's")
}

func TestPayloadComesFromAFileOrStandardInput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "payload.json")
	require.NoError(t, os.WriteFile(path, []byte("[1]\n"), 0o600))
	for source, want := range map[string]string{"@" + path: "[1]", "-": `"in"`, "null": "null"} {
		f := usual()
		f.stdin = strings.NewReader("\"in\"\n")
		_, _, err := f.run(t, "submit", "SLEEP_JOB", "--payload", source)
		require.NoError(t, err)
		require.Equal(t, `{"jobType":"SLEEP_JOB","payload":`+want+`}`, f.sent[0])
	}
	f := usual()
	_, _, err := f.run(t, "submit", "SLEEP_JOB", "--payload", "@"+path+".missing")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Empty(t, f.asked)
}

func TestUsageErrorsComeBeforeAnyRequest(t *testing.T) {
	for _, args := range [][]string{
		{"submit", "SLEEP_JOB", "--payload", "{"},
		{"submit", "SLEEP_JOB", "--payload", "text"},
		{"submit", "SLEEP_JOB", "--atomic"},
		{"submit", "--batch", "x", "--key", "k"},
		{"submit", "--batch", "x", "--wait"},
		{"get", firstID, "--wait=soon"},
		{"get", firstID, "--wait=-1s"},
		{"list", "--limit", "0"},
		{"dead-letter", "list", "--limit", "1001"},
		{"dead-letter", "retry", "--limit", "0"},
		{"edit", firstID},
		{"edit", "--priority", "1"},
		{"edit", firstID, "--type", "T", "--priority", "1"},
		{"edit", firstID, "--state", "queued", "--priority", "1"},
		{"edit", firstID, "--priority", "1", "--dry-run"},
		{"edit", "--type", "T"},
		{"job-types", "--schema"},
		{"metrics", "--since", "0s"},
		{"list", "--direct", "--server", "http://x"},
		{"plugins", "list", "--direct"},
		{"plugins", "swap", "mail", "--direct"},
		{"plugins", "restart", "mail", "--direct"},
		{"plugins", "disable", "mail", "--direct"},
		{"plugins", "enable", "mail", "--direct"},
	} {
		f := usual()
		_, _, err := f.run(t, args...)
		require.ErrorAs(t, err, &UsageError{}, args)
		require.Empty(t, f.asked, args)
	}
	// Cobra finds these. The program makes them usage errors.
	for args, want := range map[string]string{
		"get":                 "ID is missing",
		"cancel":              "ID is missing",
		"submit":              "TYPE is missing",
		"get ID 30s":          "write --wait=30s, with an equals sign",
		"get ID other":        `the argument "other" is not expected; usage: orchestrator get ID`,
		"submit X --batch y":  `the argument "X" does not go with --batch`,
		"list --status=A x":   `the argument "x" is not expected; usage: orchestrator list`,
		"job-types A B":       `the argument "B" is not expected`,
		"submit --priority x": "invalid argument",
	} {
		_, _, err := usual().run(t, strings.Fields(args)...)
		require.ErrorContains(t, err, want, args)
	}
	for _, args := range [][]string{{"get", ""}, {"cancel", firstID, ""}, {"plugins", "restart", ""}, {"submit", ""}} {
		f := usual()
		_, _, err := f.run(t, args...)
		require.ErrorContains(t, err, "is empty; usage: orchestrator "+args[0], args)
		require.Empty(t, f.asked)
	}
}

func TestSeveralJobsAreEachTried(t *testing.T) {
	f := usual()
	stdout, stderr, err := f.run(t, "cancel", firstID, secondID, "nonsense", thirdID)
	require.Equal(t, Exit{CodeFailed}, err)
	golden(t, "cancel-several", stdout)
	require.Equal(t, "orchestrator: cancel "+secondID+": the job's state does not allow this\n"+
		"orchestrator: cancel nonsense: no such resource\n", stderr)

	stdout, _, err = f.run(t, "cancel", firstID, secondID, thirdID, "--json")
	require.Equal(t, Exit{CodeFailed}, err)
	require.Equal(t, jobJSON(firstID, "CANCELED", "")+"\n"+jobJSON(thirdID, "RUNNING", during)+"\n", stdout)
}

func TestAReasonIsSentForTheAuditLog(t *testing.T) {
	for _, name := range []string{"cancel", "hold", "release", "requeue"} {
		var reasons [][]string
		f := usual()
		f.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			reasons = append(reasons, r.Header["X-Holdfast-Reason"])
			_, _ = io.WriteString(w, jobJSON(firstID, "PENDING", ""))
		})
		_, _, err := f.run(t, name, firstID, secondID, "--reason", "the bank is back")
		require.NoError(t, err)
		_, _, err = f.run(t, name, firstID)
		require.NoError(t, err)
		require.Equal(t, [][]string{{"the bank is back"}, {"the bank is back"}, nil}, reasons, name)
	}
}

func TestAnErrorThatConcernsAllJobsIsReportedOnce(t *testing.T) {
	f := &fake{answers: map[string]string{"POST /jobs/a/requeue": problem("403", `{"status":403,"detail":"not allowed"}`)}}
	_, stderr, err := f.run(t, "requeue", "a", "b", "c")
	require.EqualError(t, err, "not allowed")
	require.Empty(t, stderr)
	require.Len(t, f.asked, 1)
}

func TestTheExitCodeOfAWaitDependsOnTheOutcome(t *testing.T) {
	for status, code := range map[string]int{"COMPLETED": 0, "FAILED": CodeFound, "CANCELED": CodeFound} {
		f := usual()
		f.answers["GET /jobs/"+firstID+"?wait=30s"] = jobJSON(firstID, status, ran)
		for _, args := range [][]string{{"get", firstID, "--wait"}, {"submit", "SLEEP_JOB", "--wait"}} {
			stdout, stderr, err := f.run(t, args...)
			require.Equal(t, code, codeOf(err), status)
			require.Contains(t, stdout, status)
			require.Empty(t, stderr)
		}
	}
	f := usual()
	f.answers["GET /jobs/"+firstID+"?wait=1ms"] = jobJSON(firstID, "RUNNING", during)
	f.answers["GET /jobs/"+firstID+"?wait=0s"] = jobJSON(firstID, "RUNNING", during)
	stdout, _, err := f.run(t, "get", firstID, "--wait=1ms")
	require.EqualError(t, err, "the job is still RUNNING after 1ms")
	require.Equal(t, CodeFailed, codeOf(err))
	require.Contains(t, stdout, "RUNNING")
}

func TestACanceledJobHasNoDuration(t *testing.T) {
	for status, took := range map[string]string{"COMPLETED": "2m00s", "CANCELED": ""} {
		f := &fake{answers: map[string]string{"GET /jobs/" + firstID: jobJSON(firstID, status, ran)}}
		stdout, _, err := f.run(t, "get", firstID)
		require.NoError(t, err)
		if took == "" {
			require.NotContains(t, stdout, "TOOK", "it may have ended in its backoff")
		} else {
			require.Contains(t, stdout, "TOOK      "+took)
		}
	}
}

func TestAFailedWaitStillNamesTheAcceptedJob(t *testing.T) {
	_, stderr, err := usual().run(t, "submit", "SLEEP_JOB", "--wait=7s")
	require.ErrorContains(t, err, "no such resource")
	require.Equal(t, "The job was accepted: "+firstID+"\n", stderr)
}

func TestASubmissionThatIsKeptOutShowsTheJobThatWasThere(t *testing.T) {
	f := &fake{answers: map[string]string{
		"POST /jobs": strings.Replace(jobJSON(firstID, "RUNNING", ""), "{", `{"duplicate":true,`, 1),
	}}
	stdout, stderr, err := f.run(t, "submit", "SLEEP_JOB", "--unique-while=open")
	require.NoError(t, err)
	require.Equal(t, "No job was made, because this one was there:\n", stderr)
	require.Contains(t, stdout, firstID)

	_, stderr, err = f.run(t, "submit", "SLEEP_JOB", "--unique-while=open", "--wait=7s")
	require.ErrorContains(t, err, "no such resource")
	require.Equal(t, "No job was made, because this one was there:\n"+firstID+"\n", stderr)

	f.answers["GET /jobs/"+firstID+"?wait=7s"] = jobJSON(firstID, "COMPLETED", ran)
	stdout, stderr, err = f.run(t, "submit", "SLEEP_JOB", "--unique-while=open", "--wait=7s")
	require.NoError(t, err)
	require.Equal(t, "No job was made, because this one was there:\n", stderr)
	require.Contains(t, stdout, "COMPLETED")
}

func TestListsFollowTheirPages(t *testing.T) {
	f := &fake{answers: map[string]string{
		"GET /jobs?limit=3":                                 `{"jobs":[` + jobJSON(firstID, "PENDING", "") + `],"nextCursor":"a"}`,
		"GET /jobs?cursor=a&limit=2":                        `{"jobs":[],"nextCursor":"b"}`,
		"GET /jobs?cursor=b&limit=2":                        `{"jobs":[` + jobJSON(secondID, "PENDING", "") + `,` + jobJSON(thirdID, "PENDING", "") + `],"nextCursor":"c"}`,
		"GET /jobs?limit=1000&status=FAILED&tag=x":          `{"jobs":[` + jobJSON(firstID, "FAILED", ran) + `],"nextCursor":"d"}`,
		"GET /jobs?cursor=d&limit=1000&status=FAILED&tag=x": `{"jobs":[` + jobJSON(secondID, "FAILED", ran) + `]}`,
	}}
	stdout, stderr, err := f.run(t, "list", "--limit", "3")
	require.NoError(t, err)
	golden(t, "list-pages", stdout)
	require.Equal(t, "There may be more: --all, or --cursor c\n", stderr, "whoever reads the list")

	stdout, stderr, err = f.run(t, "list", "--limit", "3", "--json")
	require.NoError(t, err)
	require.Equal(t, f.answers["GET /jobs?limit=3"]+"\n", stdout, "one page, as it is")
	require.Empty(t, stderr, "it has its cursor")

	stdout, _, err = f.run(t, "list", "--all", "--json", "--status", "FAILED", "--tag", "x")
	require.NoError(t, err)
	require.Equal(t, jobJSON(firstID, "FAILED", ran)+"\n"+jobJSON(secondID, "FAILED", ran)+"\n", stdout)
}

func TestFiltersReachTheAPI(t *testing.T) {
	f := &fake{}
	_, _, err := f.run(t, "list", "--status", "FAILED,CANCELED", "--type", "T", "--tenant", "acme", "--tag", "a b",
		"--created-from", "2026-01-01T00:00:00Z", "--created-before", "2026-02-01T00:00:00Z", "--cursor", "c", "--limit", "7")
	require.Error(t, err)
	require.Equal(t, "GET /jobs?createdBefore=2026-02-01T00%3A00%3A00Z&createdFrom=2026-01-01T00%3A00%3A00Z&cursor=c&jobType=T&limit=7"+
		"&status=FAILED&status=CANCELED&tag=a+b&tenant=acme", f.asked[0])
	_, _, err = f.run(t, "dead-letter", "retry", "--type", "T", "--tenant", "acme", "--limit", "7", "--error-code", "c", "--fingerprint", "f")
	require.Error(t, err)
	require.Equal(t, "POST /dead-letter/retry?errorCode=c&fingerprint=f&jobType=T&limit=7&tenant=acme", f.asked[1])
}

func TestAnEditSendsOnlyWhatWasGiven(t *testing.T) {
	for args, want := range map[string]string{
		"--priority 0":                      `{"priority":0}`,
		"--run-at now":                      `{"runAt":"now"}`,
		"--delay 1h --tags a,b":             `{"delay":"1h","tags":["a","b"]}`,
		"--tags=":                           `{"tags":[]}`,
		"--run-at 2030-01-31T12:00:00Z":     `{"runAt":"2030-01-31T12:00:00Z"}`,
		"--priority -7 --tags x --delay 0s": `{"delay":"0s","priority":-7,"tags":["x"]}`,
	} {
		f := usual()
		_, _, err := f.run(t, append([]string{"edit", firstID}, strings.Fields(args)...)...)
		require.NoError(t, err)
		require.Equal(t, []string{"PATCH /jobs/" + firstID}, f.asked)
		require.Equal(t, want, f.sent[0])
	}
}

func TestAllJobsThatMatchAreEditedInPortions(t *testing.T) {
	const filters = "createdBefore=2026-02-01T00%3A00%3A00Z&createdFrom=2026-01-01T00%3A00%3A00Z"
	const others = "&jobType=T&limit=1000&state=queued&state=retry&tag=a+b&tenant=acme"
	args := []string{
		"edit", "--type", "T", "--tenant", "acme", "--tag", "a b", "--state", "queued,retry", "--priority", "3",
		"--created-from", "2026-01-01T00:00:00Z", "--created-before", "2026-02-01T00:00:00Z",
	}
	f := &fake{answers: map[string]string{
		"PATCH /jobs?" + filters + others:                                `{"count":0,"nextCursor":"c"}`,
		"PATCH /jobs?" + filters + "&cursor=c" + others:                  `{"count":7}`,
		"PATCH /jobs?" + filters + "&dryRun=true" + others:               `{"count":1000,"nextCursor":"d"}`,
		"PATCH /jobs?" + filters + "&cursor=d" + "&dryRun=true" + others: `{"count":234}`,
	}}
	stdout, _, err := f.run(t, args...)
	require.NoError(t, err)
	require.Equal(t, "7 jobs changed\n", stdout)
	require.Equal(t, []string{`{"priority":3}`, `{"priority":3}`}, f.sent)
	stdout, _, err = f.run(t, append(args, "--dry-run")...)
	require.NoError(t, err)
	require.Equal(t, "1,234 jobs would be changed\n", stdout)
	delete(f.answers, "PATCH /jobs?"+filters+"&cursor=c"+others)
	f.answers["PATCH /jobs?"+filters+others] = `{"count":5,"nextCursor":"c"}`
	_, _, err = f.run(t, args...)
	require.ErrorContains(t, err, "after 5 jobs: ")
	stdout, _, err = f.run(t, append(args, "--dry-run", "--json")...)
	require.NoError(t, err)
	require.Equal(t, `{"count":1000,"nextCursor":"d"}`+"\n"+`{"count":234}`+"\n", stdout)
}

func TestAtomicNeedsBatch(t *testing.T) {
	_, _, err := usual().run(t, "submit", "--atomic")
	require.EqualError(t, err, "--atomic goes with --batch")
	_, _, err = usual().run(t, "submit", "SLEEP_JOB", "--atomic")
	require.EqualError(t, err, "--atomic goes with --batch")
}

func TestAllDeadLettersAreRetriedInPortions(t *testing.T) {
	f := &fake{answers: map[string]string{"POST /dead-letter/retry?limit=1000": `{"count":999}`}}
	stdout, _, err := f.run(t, "dead-letter", "retry", "--all")
	require.NoError(t, err)
	require.Equal(t, "999 jobs requeued\n", stdout)
	require.Len(t, f.asked, 1)
}

func TestTheExitCodeOfDoctorDependsOnWhatItFound(t *testing.T) {
	f := &fake{answers: map[string]string{"GET /debug/doctor": warnings}}
	_, _, err := f.run(t, "doctor")
	require.NoError(t, err, "a warning is no problem")
	_, _, err = f.run(t, "doctor", "--strict", "--json")
	require.Equal(t, Exit{CodeFound}, err)
}

func TestErrorsCannotSteerTheTerminal(t *testing.T) {
	f := &fake{answers: map[string]string{"GET /jobs/x": problem("422", `{"status":422,"detail":"bad \u001b[2J","errors":[{"location":"#/a\u0007","message":"no"}]}`)}}
	_, _, err := f.run(t, "get", "x")
	require.EqualError(t, err, "bad \\x1b[2J\n  #/a\\x07: no")
	require.ErrorAs(t, err, new(*apiclient.Problem))
}

func TestBatchReportsEachRefusedLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.ndjson")
	require.NoError(t, os.WriteFile(path, []byte("{}\n\n{}\n"), 0o600))
	answer := `{"index":0,"job":{"jobId":"` + firstID + `"}}` + "\n" +
		`{"index":1,"problem":{"detail":"validation failed","errors":[{"location":"#/payload/x","message":"is odd"}]}}` + "\n" +
		`{"done":true,"accepted":1,"refused":1}` + "\n"
	for _, source := range []string{path, "-"} {
		f := &fake{answers: map[string]string{"POST /jobs/batch?atomic=false": answer}, stdin: strings.NewReader("{}\n\n{}\n")}
		stdout, stderr, err := f.run(t, "submit", "--batch", source)
		require.Equal(t, Exit{CodeFailed}, err)
		require.Regexp(t, `^1 accepted, 1 refused in \S+\n$`, stdout)
		require.Equal(t, "orchestrator: line 3: validation failed\n  #/payload/x: is odd\n", stderr)
		require.Equal(t, "{}\n\n{}\n", f.sent[0])

		f.stdin = strings.NewReader("{}\n\n{}\n")
		stdout, _, err = f.run(t, "submit", "--batch", source, "--json")
		require.Equal(t, Exit{CodeFailed}, err)
		require.Equal(t, answer, stdout, "as it came")
	}
}

func TestAByteOrderMarkIsIgnored(t *testing.T) {
	f := &fake{answers: map[string]string{"POST /jobs/batch?atomic=false": `{"index":0,"problem":{"detail":"bad"}}` + "\n" +
		`{"done":true,"accepted":0,"refused":1}` + "\n"}, stdin: strings.NewReader("\ufeff\n\n{}\n")}
	_, stderr, err := f.run(t, "submit", "--batch", "-")
	require.Equal(t, Exit{CodeFailed}, err)
	require.Equal(t, "\n\n{}\n", f.sent[0])
	require.Equal(t, "orchestrator: line 3: bad\n", stderr)

	f = usual()
	f.stdin = strings.NewReader("\ufeff{\"sleepSeconds\":1}")
	_, _, err = f.run(t, "submit", "SLEEP_JOB", "--payload", "-")
	require.NoError(t, err)
	require.Equal(t, `{"jobType":"SLEEP_JOB","payload":{"sleepSeconds":1}}`, f.sent[0])
}

func TestABatchWhoseAnswerBreaksOffCountsWhatIsKnown(t *testing.T) {
	f := &fake{
		answers: map[string]string{"POST /jobs/batch?atomic=false": `{"index":0,"job":{}}` + "\n"},
		stdin:   strings.NewReader("{}\n{}\n"),
	}
	stdout, _, err := f.run(t, "submit", "--batch", "-")
	require.ErrorContains(t, err, "the answer broke off after line 1: ")
	require.Regexp(t, `^at least 1 accepted, 0 refused in \S+\n$`, stdout)
}

func TestAtomicBatchIsAllOrNothing(t *testing.T) {
	f := &fake{stdin: strings.NewReader("{}\n{}\n"), answers: map[string]string{
		"POST /jobs/batch?atomic=true": problem("422", `{"status":422,"detail":"validation failed","errors":[{"location":"#/1/jobType","message":"is missing"}]}`),
	}}
	stdout, _, err := f.run(t, "submit", "--batch", "-", "--atomic")
	require.EqualError(t, err, "validation failed\n  line 2: #/jobType: is missing")
	require.Empty(t, stdout)

	f.answers["POST /jobs/batch?atomic=true"] = `{"index":0,"job":{}}` + "\n" + `{"index":1,"job":{}}` + "\n"
	f.stdin = strings.NewReader("{}\n{}\n")
	stdout, _, err = f.run(t, "submit", "--batch", "-", "--atomic")
	require.NoError(t, err)
	require.Contains(t, stdout, "2 accepted, 0 refused")
}

func TestCompletionProposesWhatTheAPIKnows(t *testing.T) {
	f := usual()
	f.answers["GET /jobs?limit=20"] = f.answers["GET /jobs?limit=100"]
	f.answers["GET /jobs?limit=20&status=FAILED"] = `{"jobs":[]}`
	f.answers["GET /jobs?limit=20&status=PENDING%2CRUNNING"] = f.answers["GET /jobs?limit=100"]
	ids := firstID + "\tSLEEP_JOB COMPLETED\n" + secondID + "\tSLEEP_JOB RUNNING\n:36\n"
	for args, want := range map[string]string{
		"submit":                   "PRINT\n漢字\n:36\n",
		"job-types":                "PRINT\n漢字\n:36\n",
		"job-types PRINT":          ":4\n",
		"list --type":              "PRINT\n漢字\n:36\n",
		"list --status":            "PENDING\nRUNNING\nCOMPLETED\nFAILED\nCANCELED\n:4\n",
		"get":                      ids,
		"get x":                    ":4\n",
		"inspect":                  ids,
		"cancel x":                 ids,
		"requeue":                  ":36\n",
		"list --color":             "auto\nalways\nnever\n:4\n",
		"list --tag":               ":4\n",
		"submit --batch":           ":0\n",
		"get --server http://down": ":4\n",
		"plugins swap":             "mail\tup\nidle\tdisabled\n:36\n",
		"plugins restart":          "mail\tup\nidle\tdisabled\n:36\n",
		"plugins disable":          "mail\tup\nidle\tdisabled\n:36\n",
		"plugins enable":           "mail\tup\nidle\tdisabled\n:36\n",
		"plugins swap mail":        ":4\n",
	} {
		stdout, _, err := f.run(t, append([]string{"__complete"}, append(strings.Fields(args), "")...)...)
		require.NoError(t, err, args)
		require.Equal(t, want, stdout, args)
	}
}

func TestThereAreCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		stdout, _, err := usual().run(t, "completion", shell)
		require.NoError(t, err)
		require.Contains(t, stdout, "__complete", shell)
	}
}

func TestExitPrintsNothing(t *testing.T) {
	require.False(t, errors.As(presentable(Exit{3}), new(cleanError)))
	require.NoError(t, presentable(nil))
	var compactJSON json.RawMessage = []byte("{ \"a\" : 1\n}")
	require.Equal(t, `{"a":1}`, compact(compactJSON))
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	f := &fake{answers: map[string]string{"GET /debug/jobs/lookup?q=nothing": `{"jobs":[]}`}}
	stdout, stderr, err := f.run(t, "find", "nothing")
	require.Equal(t, CodeFailed, codeOf(err))
	require.Equal(t, "Nothing has this id or idempotency key.\n", stdout+stderr)
}

func TestFiltersOfOperatorsAskForTheirList(t *testing.T) {
	f := &fake{answers: map[string]string{
		"GET /debug/jobs?jobType=T&limit=100&state=held&state=queued": `{"jobs":[]}`,
		"GET /debug/jobs?errorCode=c&limit=100&payload=p&worker=w":    `{"jobs":[]}`,
	}}
	_, _, err := f.run(t, "list", "--type", "T", "--state", "held,queued")
	require.NoError(t, err)
	_, _, err = f.run(t, "list", "--worker", "w", "--error-code", "c", "--payload", "p")
	require.NoError(t, err)
	_, _, err = f.run(t, "list", "--worker", "w", "--status", "FAILED")
	require.Error(t, err)
}
