package show

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/musterhq/muster/cmd/muster/view"
)

// tableTime is when the tables of these tests are printed.
var tableTime = time.Date(2025, 6, 1, 14, 7, 0, 0, time.UTC)

// limited returns a running job that has so much time left until its limit of 2 h.
func limited(left time.Duration) view.Job {
	return view.Job{Namespace: "ml", Kind: "JobSet", Name: "train", State: view.Running, PodsReady: 2, PodsAsked: 2,
		LeftSeconds: seconds(int64(max(left, 0) / time.Second)),
		Limit: &view.TimeLimit{Seconds: 7200, Source: "muster.dev/max-duration of ClusterQueue lab",
			EndsAt: metav1.NewTime(tableTime.Add(left))}}
}

func TestTheTableShowsTheTimeThatIsLeft(t *testing.T) {
	ends := func(after time.Duration) *metav1.Time { return &metav1.Time{Time: tableTime.Add(after)} }
	with := func(change func(job *view.Job)) view.Job {
		job := limited(80 * time.Minute)
		change(&job)
		return job
	}
	for want, job := range map[string]view.Job{
		"left 1h20m":                 limited(80*time.Minute + 59*time.Second),
		"left 9m58s":                 limited(9*time.Minute + 58*time.Second),
		"left 1d4h":                  limited(28*time.Hour + 59*time.Minute),
		"over its limit":             limited(0),
		"ends ~14:20 UTC":            {State: view.Running, ExpectedEnd: ends(13 * time.Minute)},
		"ends ~2025-06-03 14:20 UTC": {State: view.Running, ExpectedEnd: ends(48*time.Hour + 13*time.Minute)},
		"~40% done, ends ~14:20 UTC": {State: view.Running, ExpectedEnd: ends(13 * time.Minute),
			ProgressPercentage: new(int64(40))},
		"left 1h20m, ends ~14:20 UTC":    with(func(job *view.Job) { job.ExpectedEnd = ends(13 * time.Minute) }),
		"left 1h20m; restarted 2 times":  with(func(job *view.Job) { job.Message = "restarted 2 times" }),
		"-":                              {State: view.Running},
		"WaitingForQuota: 9 more needed": {State: view.Pending, Reason: "WaitingForQuota", Message: "9 more needed"},
	} {
		table := JobTable([]view.Job{job}, false, tableTime)
		if got := table.Rows[0].Cells[8]; got != want {
			t.Errorf("WHY is %q, want %q", got, want)
		}
	}
}

// TestARowWithALimitFitsAnOrdinaryTerminal: the time that is left stands where it can be read in 80 columns.
func TestARowWithALimitFitsAnOrdinaryTerminal(t *testing.T) {
	job := limited(80 * time.Minute)
	job.Kind, job.Queue, job.Workload, job.Priority, job.RunSeconds = "Job", "gpu", "w", 10, seconds(2400)
	lines, err := Lines(JobTable([]view.Job{job}, false, tableTime), printers.PrintOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if row := lines[1]; len(row) > 80 || !strings.HasSuffix(row, "left 1h20m") {
		t.Errorf("the row is %q, want the time that is left within 80 columns", row)
	}
}

func TestTheExplanationOfARunningJobHasItsLimit(t *testing.T) {
	job := limited(80 * time.Minute)
	job.ExpectedEnd, job.ProgressPercentage = &metav1.Time{Time: tableTime.Add(13 * time.Minute)}, new(int64(40))
	paused := limited(0)
	paused.Limit.Pauses = true
	const limit = "  limit     2h, set by muster.dev/max-duration of ClusterQueue lab: "
	for _, test := range []struct {
		job  view.Job
		want string
	}{
		{job, limit + "left 1h20m, until 2025-06-01 15:27:00 UTC; its pods are stopped and its Workload is deactivated then\n" +
			"  done      about 40%, as its pods report\n" +
			"  ends      about 2025-06-01 14:20:00 UTC, as its pods report\n"},
		{paused, limit + "over its limit, since 2025-06-01 14:07:00 UTC; it is paused then\n"},
	} {
		var text strings.Builder
		if err := Explanation(&text, &view.Explanation{Job: test.job}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), test.want) {
			t.Errorf("the explanation is\n%s\nwant it to contain\n%s", text.String(), test.want)
		}
	}
}

// TestElapsedTimeAloneIsNoChange: a followed job is not printed anew each second.
func TestElapsedTimeAloneIsNoChange(t *testing.T) {
	changes, before, after := JobChanges(), limited(time.Hour), limited(time.Hour)
	after.LeftSeconds = seconds(3599)
	changes.Next([]view.Job{before})
	if changed := changes.Next([]view.Job{after}); len(changed) > 0 {
		t.Errorf("changed = %v, want nothing", changed)
	}
}
