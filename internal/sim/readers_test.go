package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/engine/durations"
)

// swfLine returns a line of a log with these columns.
func swfLine(submitted, ran, processors, requested, user string) string {
	return strings.Join([]string{"7", submitted, "0", ran, processors, "-1", "-1", processors, requested, "-1", "1", user,
		"1", "-1", "1", "-1", "-1", "-1"}, " ") + "\n"
}

func TestReadSWF(t *testing.T) {
	log := "; a comment\n\n" + swfLine("100", "30", "4", "60", "12") + swfLine("110.5", "90", "2", "60", "3") +
		swfLine("120", "-1", "2", "60", "3") + swfLine("130", "5", "1", "-1", "-1") + "8 140 0 5 1\n"
	got, err := ReadSWF(strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	known := func(limit int, user string) durations.Known {
		return durations.Known{Limit: seconds(limit), Kind: "user " + user}
	}
	want := []Job{
		{Name: "job-0000000", Min: 4, Max: 4, Work: seconds(30), User: "12", Time: known(60, "12")},
		{Name: "job-0000001", Arrives: seconds(10), Min: 2, Max: 2, Work: seconds(60), User: "3", Time: known(60, "3")},
		{Name: "job-0000002", Arrives: seconds(30), Min: 1, Max: 1, Work: seconds(5), User: "-1", Time: known(0, "-1")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("jobs (-want +got): the third has no run time, and the last line is cut off\n%s", diff)
	}
}

func TestReadSWFRefusesWhatMakesNoSense(t *testing.T) {
	good := swfLine("100", "30", "4", "60", "12")
	for name, tc := range map[string]struct{ log, says string }{
		"a line that is cut off": {"8 140 0\n" + good, "line 1 has fewer than the 18 columns"},
		"no log at all":          {"PNG\x00\n" + good, "line 1 has fewer than"},
		"a text for a number":    {good + swfLine("x", "30", "4", "60", "1"), "line 2: column 2, the submit time"},
		"a negative submit time": {good + swfLine("-5", "30", "4", "60", "1"), "line 2: column 2, the submit time"},
		"a negative run time":    {swfLine("1", "-30", "4", "60", "1"), "column 4, the run time"},
		"an absurd run time":     {swfLine("1", "1e300", "4", "60", "1"), "column 4, the run time"},
		"no number":              {swfLine("1", "NaN", "4", "60", "1"), "column 4, the run time"},
		"absurd processors":      {swfLine("1", "30", "4000000000", "60", "1"), "column 5, the number of processors"},
		"an absurd limit":        {swfLine("1", "30", "4", "+Inf", "1"), "column 9, the requested time"},
		"a long user":            {swfLine("1", "30", "4", "60", strings.Repeat("u", 300)), "column 12, the user"},
		"time that goes back":    {good + swfLine("99", "30", "4", "60", "1"), "line 2: the job is submitted at 99 s,"},
		"a line without an end":  {good + strings.Repeat("1", mostLineBytes+1), "line 2: bufio.Scanner: token too long"},
	} {
		t.Run(name, func(t *testing.T) {
			if jobs, err := ReadSWF(strings.NewReader(tc.log)); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error = %v with %d jobs, want one that says %q", err, len(jobs), tc.says)
			}
		})
	}
}

const measured = `{"name": "a-0", "at": 110, "replicas": 2, "max": 3, "work": 90.5, "speed": [1, 1.5, 1.25],
  "exp": 0.5, "app": "a"}`

func TestReadListOfMeasuredSpeeds(t *testing.T) {
	job := Job{Name: "job-0000000", Arrives: seconds(110), Min: 1, Max: 3, Work: 90*time.Second + 500*time.Millisecond,
		Exponent: 0.5, Speed: []float64{1, 1.5, 1.25}, User: "a", Time: durations.Known{Kind: "app a"}}
	for _, rigid := range []bool{false, true} {
		if rigid {
			job.Min, job.Max = 2, 2
		}
		got, err := ReadList(strings.NewReader("["+measured+"]"), rigid)
		if diff := cmp.Diff([]Job{job}, got); err != nil || diff != "" {
			t.Errorf("rigid %t: error %v; jobs (-want +got):\n%s", rigid, err, diff)
		}
	}
}

// TestReadListOfGangs: what a job may say beside its run time.
func TestReadListOfGangs(t *testing.T) {
	const list = `[{"at": 5, "replicas": 4, "run": 90, "limit": 60, "expected": 50, "user": "ann", "priority": 100,
  "within": "rack"}, {"at": 5, "replicas": 1, "run": 90, "app": "x", "user": "ann"}]`
	want := []Job{
		{Name: "job-0000000", Arrives: seconds(5), Min: 4, Max: 4, Work: seconds(60), User: "ann", Priority: 100,
			Within: "rack", Time: durations.Known{Limit: seconds(60), Expected: seconds(50), Kind: "user ann"}},
		{Name: "job-0000001", Arrives: seconds(5), Min: 1, Max: 1, Work: seconds(90), User: "ann",
			Time: durations.Known{Kind: "app x"}},
	}
	got, err := ReadList(strings.NewReader(list), false)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v; jobs (-want +got):\n%s", err, diff)
	}
}

func TestReadListRefusesWhatMakesNoSense(t *testing.T) {
	with := func(from, to string) string {
		return "[" + measured + ",\n" + strings.Replace(measured, from, to, 1) + "]"
	}
	for name, tc := range map[string]struct{ list, says string }{
		"no list":            {`{"jobs": []}`, "line 1: no list of jobs in JSON begins here"},
		"nothing":            {"", "line 1: no list of jobs in JSON begins here"},
		"a list cut off":     {"[" + measured, "line 2: the list is cut off: EOF"},
		"a job cut off":      {"[" + measured[:60], "line 1: job 1 of the list: unexpected EOF"},
		"a text":             {with("110", `"x"`), "job 2 of the list: json: cannot unmarshal string"},
		"a negative time":    {with("110", "-1"), `line 4: job 2 of the list, "a-0": at must be`},
		"no work":            {with("90.5", "0"), "work must be"},
		"absurd work":        {with("90.5", "1e200"), "work must be"},
		"absurd replicas":    {with(`"max": 3`, `"max": 2000000000`), "max must be from 1"},
		"a size over max":    {with(`"replicas": 2`, `"replicas": 4`), "replicas must be from 1 to max, which is 3"},
		"too few speeds":     {with("1.5, ", ""), "speed has 2 entries, and max is 3"},
		"no speed at all":    {with("1.5", "0"), "speed at 2 replicas must be at least 0.001"},
		"an absurd slope":    {with(`"exp": 0.5`, `"exp": 5`), "exp must be above 0"},
		"an unknown field":   {with(`"app"`, `"limt": 5, "app"`), `unknown field "limt"`},
		"both":               {with(`"max"`, `"run": 5, "max"`), "a job has either run, or max, work, speed and exp"},
		"a negative run":     {`[{"replicas": 1, "run": -1}]`, "run must be a number of seconds above 0"},
		"no replicas":        {`[{"run": 5}]`, "replicas must be from 1"},
		"a negative limit":   {`[{"replicas": 1, "run": 5, "limit": -5}]`, "limit must be a number"},
		"an absurd estimate": {`[{"replicas": 1, "run": 5, "expected": 1e12}]`, "expected must be a number"},
		"a number too long":  {with("1.25", "1e999"), "cannot unmarshal number"},
	} {
		t.Run(name, func(t *testing.T) {
			jobs, err := ReadList(strings.NewReader(tc.list), false)
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error = %v with %d jobs, want one that says %q", err, len(jobs), tc.says)
			}
		})
	}
}

// TestMeasuredSpeedsCount: 2 replicas do 1.5 times the work of one.
func TestMeasuredSpeedsCount(t *testing.T) {
	jobs := []Job{{Name: "a", Min: 2, Max: 2, Work: seconds(90), Speed: []float64{1, 1.5}, Exponent: 1}}
	if diff := cmp.Diff([]float64{60}, took(Cluster{GPUs: 2}.Run(jobs))); diff != "" {
		t.Errorf("durations (-want +got):\n%s", diff)
	}
}

// TestFigures: of 4 GPUs, a has 4 for 10 s of the 20 s until c arrives, which waits 80 s and runs 20 s; b waits for a.
func TestFigures(t *testing.T) {
	a, b, c := of("a", 0, 4, 4, 40), of("b", 0, 2, 2, 180), of("c", 20, 4, 4, 80)
	jobs := []Job{a, b, c, of("d", 20, 9, 9, 1)}
	got := Cluster{GPUs: 4, Strategy: 0}.Run(jobs).Figures(jobs, GPU, func(*Job) bool { return true })
	want := Figures{Jobs: 4, Unstarted: 1, Mean: seconds(30), Median: seconds(10), P90: seconds(80), P99: seconds(80),
		Longest: seconds(80), Slowdown: (1 + 100.0/90 + 5) / 3, Used: 4*10 + 2*10, Within: seconds(20)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
}
