package engine_test

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/record"
)

// TestScenes plays the scenes of testdata/scenes, whose README.md explains their language, and compares what the engine
// decides. With -rewrite it writes the decisions into the files.
func TestScenes(t *testing.T) {
	datadriven.Walk(t, "testdata/scenes", func(t *testing.T, path string) {
		if !strings.HasSuffix(path, ".txt") {
			return
		}
		datadriven.RunTest(t, path, player(nil))
	})
}

// player returns a function that plays the commands of a file. It writes a decision log if log is not nil.
func player(log io.Writer) func(*testing.T, *datadriven.TestData) string {
	var s *scene
	return func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd == "scene" {
			fresh, err := newScene(d.CmdArgs, log)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			s = fresh
		}
		if s == nil {
			d.Fatalf(t, "the file does not begin with a scene")
		}
		out, err := s.play(d)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return out
	}
}

// scene is an engine, and around it the API server, which stores each decision at once unless the scene says otherwise.
type scene struct {
	options engine.Options
	engine  *engine.Engine
	record  io.Writer   // where a decision log is written, nil for nowhere
	log     *record.Log // the log of the present engine
	now     time.Time
	jobs    map[engine.Key]engine.Workload // as the API server has them
	others  map[string]engine.Event        // the other objects, by kind and name
	order   []string                       // the keys of others, in the order in which they appeared
	decided map[engine.Key]*engine.Admission
	refuses map[engine.Key]string            // what the API server says to an admission
	delayed map[engine.Key][]engine.Decision // decisions whose writes take long, if there is an entry
	queued  int
	// byHand says that the scene has a line for each write, messages that messages are printed with codes.
	byHand, messages bool
	// recorded says that the scene was a decision log: it has a line for each event and a command for each pass.
	recorded bool
	// began is when the scene begins, if that is not startOfScene.
	began time.Time
	// onNodes says that pods of the flavor default are placed on nodes, by racks and nodes.
	onNodes bool
}

var optionWords = vocabulary[scene]{words: []word[scene]{
	choice("block", func(s *scene) *engine.Block { return &s.options.BlockUntilReady }, "none", "queue", "all"),
	toggle("ignore-undeclared", func(s *scene) *bool { return &s.options.IgnoreUndeclared }),
	list("fair-sharing", func(s *scene) *[]preempt.Strategy {
		if s.options.FairSharing == nil {
			s.options.FairSharing = &engine.FairSharing{}
		}
		return &s.options.FairSharing.Strategies
	}, func(name string) (preempt.Strategy, error) {
		if n := slices.Index(strategies, name); n >= 0 {
			return preempt.Strategy(n), nil
		}
		return 0, fmt.Errorf("there is no strategy %q", name)
	}, func(s preempt.Strategy) string { return strategies[s] }),
	duration("half-life", func(s *scene) *time.Duration { return &usageOf(s).HalfLife }),
	duration("sample-every", func(s *scene) *time.Duration { return &usageOf(s).Interval }),
	asJSON("usage-weights", func(s *scene) *map[string]float64 { return &usageOf(s).Weights }),
	duration("grow-after", func(s *scene) *time.Duration { return &s.options.Elastic.GrowAfter }),
	duration("check-every", func(s *scene) *time.Duration { return &s.options.CheckWaitingEvery }),
	duration("resize-cost", func(s *scene) *time.Duration { return &s.options.Elastic.ResizeCost }),
	wordOf("reservations", func(s *scene) *int { return &s.options.Reservations }, strconv.Atoi, strconv.Itoa),
	toggle("on-nodes", func(s *scene) *bool { return &s.onNodes }),
	moment("began", func(s *scene) *time.Time { return &s.began }),
	toggle("recorded", func(s *scene) *bool { return &s.recorded }),
	toggle("by-hand", func(s *scene) *bool { return &s.byHand }),
	toggle("messages", func(s *scene) *bool { return &s.messages }),
}}

var strategies = []string{"final-share", "initial-share"}

// usageOf returns the options of the order by usage, which the scene turns on.
func usageOf(s *scene) *engine.AdmissionFairSharing {
	if s.options.AdmissionFairSharing == nil {
		s.options.AdmissionFairSharing = &engine.AdmissionFairSharing{}
	}
	return s.options.AdmissionFairSharing
}

// emptyScene returns a scene without an engine.
func emptyScene() *scene {
	return &scene{jobs: map[engine.Key]engine.Workload{}, others: map[string]engine.Event{},
		decided: map[engine.Key]*engine.Admission{}, refuses: map[engine.Key]string{},
		delayed: map[engine.Key][]engine.Decision{}}
}

// newScene returns a scene without objects but for the flavor default. It writes a decision log if log is not nil.
func newScene(args []datadriven.CmdArg, log io.Writer) (*scene, error) {
	s := emptyScene()
	s.record = log
	epoch = startOfScene
	for _, arg := range args {
		if err := optionWords.read(s, []string{joined(arg.Key, strings.Join(arg.Vals, ","))}); err != nil {
			return nil, err
		}
	}
	if !s.began.IsZero() {
		epoch = s.began
	}
	s.now = epoch
	if !s.recorded {
		s.options.CheckWaitingEvery = time.Nanosecond
	}
	s.begin()
	if s.recorded {
		s.byHand = true
		return s, nil
	}
	if !s.onNodes {
		return s, s.apply("flavor default")
	}
	if err := s.apply("flavor default topology=racks"); err != nil {
		return nil, err
	}
	return s, s.apply("topology racks levels=rack,hostname")
}

// play carries out a command and returns what it prints.
func (s *scene) play(d *datadriven.TestData) (string, error) {
	switch d.Cmd {
	case "scene", "then", "settle":
		if err := s.applyAll(d.Input); err != nil {
			return "", err
		}
		lines := s.decide()
		if d.Cmd == "settle" {
			lines = append(lines, s.settle()...)
		}
		if len(lines) == 0 && d.Cmd == "then" {
			lines = []string{"nothing is decided"}
		}
		return joinLines(lines), nil
	case "pass", "check":
		return s.pass(d)
	}
	var lines []string
	if d.Cmd == "explain" {
		return s.explain(d.CmdArgs)
	}
	for _, arg := range d.CmdArgs {
		text, err := s.show(d.Cmd, arg.Key)
		if err != nil {
			return "", err
		}
		lines = append(lines, text)
	}
	switch d.Cmd {
	case "due":
		lines = []string{s.due()}
	case "promises":
		lines = s.promises()
	}
	return joinLines(lines), nil
}

func joinLines(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// pass applies the events of a decision log up to a pass or a check, and decides once.
func (s *scene) pass(d *datadriven.TestData) (out string, err error) {
	if len(d.CmdArgs) != 1 || d.CmdArgs[0].Key != "at" {
		return "", fmt.Errorf("%s needs at=TIME", d.Cmd)
	}
	if err := s.applyAll(d.Input); err != nil {
		return "", err
	}
	if s.now, err = parseMoment(d.CmdArgs[0].Vals[0]); err != nil {
		return "", err
	}
	var lines []string
	if d.Cmd == "check" {
		missed, _ := s.check(s.now)
		return joinLines(missed), nil
	}
	for _, decision := range s.decidePass() {
		lines = append(lines, s.format(decision))
		s.remember(decision)
	}
	return joinLines(lines), nil
}

// check lets the engine evaluate a class of waiting workloads, and returns a line for each that need not wait.
func (s *scene) check(at time.Time) (lines []string, checked bool) {
	missed, checked := s.engine.CheckWaiting(at)
	if s.log != nil && checked {
		s.must(s.log.Check(at, missed))
	}
	return missedLines(missed), checked
}

func missedLines(missed []engine.Key) (lines []string) {
	for _, job := range missed {
		lines = append(lines, formatKey(job)+" waits, and need not")
	}
	return lines
}

func (s *scene) applyAll(input string) error {
	for line := range strings.Lines(input) {
		line = strings.TrimSpace(line)
		if err := s.apply(line); err != nil {
			return fmt.Errorf("%q: %w", line, err)
		}
	}
	return nil
}

// apply carries out one line: an event, or what happens to a job, the clock or the API server.
func (s *scene) apply(line string) error {
	words := fields(line)
	if len(words) == 0 || strings.HasPrefix(line, "#") {
		return nil
	}
	names := words[1:]
	switch words[0] {
	case "queue":
		ev, err := eventOf("cluster" + line)
		if err != nil {
			return err
		}
		s.happens(ev)
		s.happens(engine.LocalQueueSet{LocalQueue: newLocalQueue(names[0])})
		return nil
	case "node":
		for name := range strings.SplitSeq(names[0], ",") {
			ev, err := eventOf(strings.Join(append([]string{"node", name}, names[1:]...), " "))
			if err != nil {
				return err
			}
			s.happens(ev)
		}
		return nil
	case "job":
		return s.submit(names)
	case "change":
		return s.change(names[0], names[1:]...)
	case "ready", "stopped", "shrunk":
		for _, name := range names {
			if err := s.change(name, map[string][]string{"ready": {"ready"}, "shrunk": {"shrunk"},
				"stopped": {"evicted=no", "admitted=no", "holding", "nothing"}}[words[0]]...); err != nil {
				return err
			}
		}
		return nil
	case "run":
		return s.run(names)
	case "clock":
		return s.advance(names[0])
	case "restart":
		s.restart()
		return nil
	case "delay":
		s.delayed[parseKey(names[0])] = []engine.Decision{}
		return nil
	case "written":
		if decisions, ok := s.delayed[parseKey(names[0])]; ok {
			delete(s.delayed, parseKey(names[0]))
			for _, d := range decisions {
				s.write(d)
			}
			return nil
		}
	case "refuse":
		s.refuses[parseKey(names[0])] = unquoted(names[1])
		return nil
	case "accept":
		delete(s.refuses, parseKey(names[0]))
		return nil
	}
	ev, err := eventOf(line)
	if err == nil {
		s.happens(ev)
	}
	return err
}

// submit creates a job, or replaces it by another of its name. It is queued one second after the job before it, unless
// its line says something else.
func (s *scene) submit(words []string) error {
	w := newWorkload(unquoted(words[0]))
	if err := readJob(&w, words[1:], s.decided[w.Key]); err != nil {
		return err
	}
	if !s.recorded && !slices.ContainsFunc(words, func(text string) bool { return strings.HasPrefix(text, "queued=") }) {
		w.QueuedAt = epoch.Add(time.Duration(s.queued) * time.Second)
	}
	s.queued++
	s.set(w)
	return nil
}

// change changes words of a job.
func (s *scene) change(name string, words ...string) error {
	w, ok := s.jobs[parseKey(name)]
	if !ok {
		return fmt.Errorf("there is no job %s", name)
	}
	if slices.Equal(words, []string{"shrunk"}) {
		given := *w.Admission
		given.PodSets = slices.Clone(given.PodSets)
		for i := range given.PodSets {
			given.PodSets[i].Surplus = nil
		}
		w.Admission = &given
	} else if err := readJob(&w, words, s.decided[w.Key]); err != nil {
		return err
	}
	s.set(w)
	return nil
}

func (s *scene) set(w engine.Workload) {
	if !s.byHand {
		w.Version = s.jobs[w.Key].Version + 1
	}
	s.happens(engine.WorkloadSet{Workload: w})
}

// happens applies an event to the engine and to the state of the API server.
func (s *scene) happens(ev engine.Event) {
	s.remembers(ev)
	s.tell(ev)
}

// remembers keeps the object of an event.
func (s *scene) remembers(ev engine.Event) {
	switch ev := ev.(type) {
	case engine.WorkloadSet:
		s.jobs[ev.Key] = ev.Workload
	case engine.WorkloadGone:
		delete(s.jobs, ev.Key)
	default:
		name := strings.TrimPrefix(strings.Join(fields(lineOf(ev))[:2], " "), "delete-")
		if !slices.Contains(s.order, name) {
			s.order = append(s.order, name)
		}
		s.others[name] = ev
	}
}

// tell applies an event to the engine.
func (s *scene) tell(ev engine.Event) {
	if s.log != nil {
		s.must(s.log.Event(ev))
	}
	s.engine.Apply(ev)
}

// decidePass lets the engine decide once.
func (s *scene) decidePass() []engine.Decision {
	decisions := s.engine.Decide(s.now)
	if s.log != nil {
		s.must(s.log.Pass(s.now, decisions))
	}
	return decisions
}

func (s *scene) must(err error) {
	if err != nil {
		panic(err)
	}
}

// begin gives the scene a new engine.
func (s *scene) begin() {
	s.engine = engine.New(s.options)
	if s.record != nil {
		log, err := record.Begin(s.record, s.options)
		s.must(err)
		s.log = log
	}
}

// run binds the pods of jobs to their places: the pods job-0, job-1 and so on.
func (s *scene) run(names []string) error {
	for _, name := range names {
		w := s.jobs[parseKey(name)]
		if w.Admission == nil {
			return fmt.Errorf("%s holds nothing", name)
		}
		var at []string
		for _, p := range w.Admission.PodSets[0].Places {
			at = append(at, slices.Repeat([]string{p.Node}, int(p.Count))...)
		}
		for n, node := range at {
			s.happens(engine.PodBound{Pod: place.Pod{Key: parseKey(fmt.Sprintf("%s-%d", name, n)), Node: node,
				Requests: w.PodSets[0].PerPod, Workload: w.Key, PodSet: w.PodSets[0].Name}})
		}
	}
	return nil
}

// advance moves the clock by a duration, or to when the engine wants to decide again.
func (s *scene) advance(to string) error {
	if to == "due" {
		if s.engine.Due().IsZero() {
			return fmt.Errorf("no pass is due")
		}
		s.now = s.engine.Due()
		return nil
	}
	after, err := time.ParseDuration(strings.TrimPrefix(to, "+"))
	s.now = s.now.Add(after)
	return err
}

// restart replaces the engine by a new one, which gets the present state of all objects.
func (s *scene) restart() {
	s.begin()
	for _, name := range s.order {
		s.tell(s.others[name])
	}
	for _, k := range s.names() {
		s.tell(engine.WorkloadSet{Workload: s.jobs[k]})
	}
}

// names returns the keys of the jobs, sorted.
func (s *scene) names() []engine.Key {
	return slices.SortedFunc(maps.Keys(s.jobs), func(a, b engine.Key) int {
		return cmp.Compare(formatKey(a), formatKey(b))
	})
}

// decide lets the engine decide until it is idle, stores the decisions, and returns one line for each.
func (s *scene) decide() (lines []string) {
	for {
		decisions := s.decidePass()
		for passes := 0; s.engine.Busy(); passes++ {
			if passes > 1000 {
				panic("decisions never end")
			}
			decisions = append(decisions, s.decidePass()...)
		}
		for _, d := range decisions {
			lines = append(lines, s.format(d))
			s.remember(d)
			if !s.byHand {
				s.write(d)
			}
		}
		if len(decisions) == 0 || s.byHand {
			return append(lines, s.checkAll()...)
		}
	}
}

// checkAll lets the engine evaluate all waiting workloads once more, and returns a line for each that need not wait.
func (s *scene) checkAll() (lines []string) {
	for n := range 2 * len(s.jobs) {
		missed, checked := s.check(s.now.Add(time.Duration(n) * s.options.CheckWaitingEvery))
		if !checked {
			break
		}
		lines = append(lines, missed...)
	}
	return lines
}

// remember keeps what was decided that the job holds.
func (s *scene) remember(d engine.Decision) {
	switch {
	case d.Admit != nil:
		s.decided[d.Key] = d.Admit
	case d.Replace != nil:
		s.decided[d.Key] = d.Replace
	case d.Resize != nil:
		s.decided[d.Key] = d.Resize.Admission
	}
}

// format returns the line of a decision.
func (s *scene) format(d engine.Decision) string {
	name := formatKey(d.Key)
	switch {
	case d.Admit != nil:
		out := fmt.Sprintf("admit %s in %s", name, d.Admit.ClusterQueue)
		for i, ps := range s.jobs[d.Key].PodSets {
			if given := d.Admit.PodSets[i].Count; given != ps.Count {
				out += fmt.Sprintf(", %d of %d %s", given, ps.Count, ps.Name)
			}
		}
		return out
	case d.Replace != nil:
		return "replace " + name
	case d.Resize != nil:
		return resizeLine(name, d.Resize)
	case d.Evict != nil:
		return s.evictionLine(name, d.Evict)
	case d.Withdraw:
		return "withdraw " + name
	case d.Try != nil:
		return "try " + name
	case s.messages:
		return fmt.Sprintf("%s waits: %s: %s", name, d.Why.Code, d.Why.Message())
	}
	return fmt.Sprintf("%s waits: %s", name, d.Why.Code)
}

func resizeLine(name string, r *engine.Resize) string {
	out := fmt.Sprintf("resize %s from %d to %d", name, r.From, r.To)
	if r.For != (engine.Key{}) {
		out += " for " + formatKey(r.For)
	}
	if r.Unwanted {
		out += ", which wants fewer"
	}
	if r.Detail != "" {
		out += ": " + r.Detail
	}
	return out
}

func (s *scene) evictionLine(name string, e *engine.Eviction) string {
	out := fmt.Sprintf("evict %s", name)
	if e.Preemptor != (engine.Key{}) {
		out += " for " + formatKey(e.Preemptor)
	}
	out += ": " + map[preempt.Cause]string{preempt.InQueue: "in queue", preempt.Reclaimed: "reclaimed",
		preempt.ReclaimedWhileBorrowing: "while borrowing", preempt.FairShare: "fair share",
		preempt.NodeFailures: "NodeFailures"}[e.Cause]
	if s.messages && e.Path != "" {
		out += fmt.Sprintf(", in %s for %s", e.Path, e.PreemptorPath)
	}
	if s.messages && e.Detail != "" {
		out += ": " + e.Detail
	}
	return out
}

// write stores the decision in the API server, unless that refuses it.
func (s *scene) write(d engine.Decision) {
	if d.Withdraw {
		return // its write is in progress: only the result of the admission is reported
	}
	if decisions, late := s.delayed[d.Key]; late {
		s.delayed[d.Key] = append(decisions, d)
		return
	}
	if word, no := s.refuses[d.Key]; no && d.Why.Code == "" {
		s.tell(engine.Refused{Key: d.Key, UID: d.UID, Serial: d.Serial, Generation: d.Generation, Message: word, At: s.now})
		return
	}
	if d.Try != nil {
		s.tell(engine.Tried{Key: d.Key, UID: d.UID, Serial: d.Serial})
		return
	}
	w := s.jobs[d.Key]
	w.Version++
	switch {
	case d.Admit != nil:
		w.Admission, w.Admitted, w.ReservedAt, w.Evicted, w.ReportedCode = d.Admit, len(d.Admit.Checks) == 0, s.now, false, ""
	case d.Replace != nil:
		w.Admission = d.Replace
	case d.Resize != nil:
		w.Admission, w.ResizedAt = d.Resize.Admission, s.now
	case d.Evict != nil:
		w.Evicted = true
	default:
		w.ReportedCode = d.Why.Code
		if d.Why.Code.Actionable() {
			w.ReportedMessage = d.Why.Message()
		}
	}
	s.jobs[d.Key] = w
	if d.Why.Code == "" {
		s.tell(engine.Written{Key: d.Key, UID: d.UID, Serial: d.Serial, Version: w.Version})
	}
}

// settle lets the pods of evicted and shrunk jobs terminate until nothing more is decided, and returns the decisions
// and the sizes of all jobs in the end.
func (s *scene) settle() (lines []string) {
	for range 50 {
		changed := false
		for _, k := range s.names() {
			w := s.jobs[k]
			surplus := w.Admission != nil && slices.ContainsFunc(w.Admission.PodSets,
				func(a engine.Assignment) bool { return len(a.Surplus) > 0 })
			word := map[bool]string{true: "stopped", false: "shrunk"}[w.Evicted]
			if changed = changed || w.Evicted || surplus; w.Evicted || surplus {
				if err := s.apply(word + " " + formatKey(k)); err != nil {
					panic(err)
				}
			}
		}
		decided := s.decide()
		lines = append(lines, decided...)
		if !changed && len(decided) == 0 {
			break
		}
	}
	sizes := []string{}
	for _, k := range s.names() {
		size := int32(0)
		if a := s.jobs[k].Admission; a != nil {
			size = a.PodSets[0].Count
		}
		sizes = append(sizes, fmt.Sprintf("%s %d", formatKey(k), size))
	}
	return append(lines, "sizes: "+strings.Join(sizes, ", "))
}

// show returns what a command says about an object.
func (s *scene) show(command, name string) (string, error) {
	switch command {
	case "holds":
		a := s.jobs[parseKey(name)].Admission
		if s.byHand {
			a = s.decided[parseKey(name)]
		}
		if a == nil {
			return name + " holds nothing", nil
		}
		return strings.Join(append([]string{name, "holds"}, admissionWords(a)[1:]...), " "), nil
	case "usage":
		return s.usage(name)
	case "starts":
		return s.startOf(name), nil
	}
	return "", fmt.Errorf("there is no command %q", command)
}

// startOf returns the planned start of a job.
func (s *scene) startOf(name string) string {
	start, ok := s.engine.PlannedStart(parseKey(name))
	if !ok {
		return name + " has no planned start"
	}
	text := name + " starts at " + formatMoment(start.At)
	if start.Promised {
		text += ", which is promised,"
	}
	var after []string
	for _, key := range start.After {
		after = append(after, formatKey(key))
	}
	return text + " after " + strings.Join(after, ", ")
}

// promises returns the promised starts of jobs that wait, and how many were kept and delayed.
func (s *scene) promises() []string {
	out := []string{fmt.Sprintf("kept %d", s.engine.PromisesKept())}
	for _, cause := range slices.Sorted(maps.Keys(s.engine.PromisesLate())) {
		out = append(out, fmt.Sprintf("delayed %d: %s", s.engine.PromisesLate()[cause], cause))
	}
	waiting := map[string]time.Time{}
	for key, at := range s.engine.Promises {
		waiting[formatKey(key)] = at
	}
	for _, name := range slices.Sorted(maps.Keys(waiting)) {
		out = append(out, name+" at "+formatMoment(waiting[name]))
	}
	return out
}

// explain returns what the engine says about a job, or only the named fields of that.
func (s *scene) explain(args []datadriven.CmdArg) (string, error) {
	x, ok := s.engine.Explain(parseKey(args[0].Key))
	if !ok {
		return "", fmt.Errorf("there is no job %s", args[0].Key)
	}
	text, err := yaml.Marshal(x)
	if len(args) == 1 || err != nil {
		return string(text), err
	}
	all, some := map[string]any{}, map[string]any{}
	if err := yaml.Unmarshal(text, &all); err != nil {
		return "", err
	}
	for _, arg := range args[1:] {
		some[arg.Key] = all[arg.Key]
	}
	text, err = yaml.Marshal(some)
	return string(text), err
}

// usage returns what a queue or cohort uses: what its workloads hold, how many hold, and its share in thousandths.
func (s *scene) usage(name string) (string, error) {
	u, ok := s.engine.QueueUsage(name)
	if !ok {
		share, ok := s.engine.CohortShare(name)
		if !ok {
			return "", fmt.Errorf("there is no queue or cohort %s", name)
		}
		return fmt.Sprintf("%s: share %d", name, share), nil
	}
	out := fmt.Sprintf("%s: %d with quota, %d admitted", name, u.Reserving, u.Admitted)
	for _, fr := range slices.SortedFunc(maps.Keys(u.Reserved), func(a, b quota.FlavorResource) int {
		return cmp.Or(cmp.Compare(a.Flavor, b.Flavor), cmp.Compare(a.Resource, b.Resource))
	}) {
		out += fmt.Sprintf(" %s=%d@%s", fr.Resource, u.Reserved[fr], fr.Flavor)
	}
	if u.Share != nil {
		out += fmt.Sprintf(", share %d", ptr.Deref(u.Share, 0))
	}
	return out, nil
}

func (s *scene) due() string {
	due := s.engine.Due()
	switch {
	case s.engine.Busy():
		return "now"
	case due.IsZero():
		return "when something changes"
	}
	return "in " + due.Sub(s.now).String()
}
