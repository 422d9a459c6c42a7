package engine_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/durations"
	"github.com/musterhq/muster/internal/engine/place"
)

// kind is a kind of line: its first word, and the event that it stands for.
type kind struct {
	name string
	// read returns the event of an object of that name.
	read func(name string, words []string) (engine.Event, error)
	// write returns the name and the words of an event of this kind, and false for other events.
	write func(engine.Event) (name string, words []string, ok bool)
}

// kindOf returns the kind of line for events of type E, with objects of type T.
func kindOf[E engine.Event, T any](
	name string, v vocabulary[T], fresh func(name string) T, of func(T) E, object func(E) (T, string),
) kind {
	return kind{name,
		func(name string, words []string) (engine.Event, error) {
			it := fresh(name)
			err := v.read(&it, words)
			return of(it), err
		},
		func(ev engine.Event) (string, []string, bool) {
			e, ok := ev.(E)
			if !ok {
				return "", nil, false
			}
			it, name := object(e)
			return name, v.written(&it), true
		}}
}

// A run that ended was of the kind that the line names.
var runEndedWords = vocabulary[engine.RunEnded]{words: []word[engine.RunEnded]{
	duration("took", func(r *engine.RunEnded) *time.Duration { return &r.Took }),
	duration("limit", func(r *engine.RunEnded) *time.Duration { return &r.Time.Limit }),
	duration("expected", func(r *engine.RunEnded) *time.Duration { return &r.Time.Expected }),
	duration("ran", func(r *engine.RunEnded) *time.Duration { return &r.Time.Ran }),
	text("wider-kind", func(r *engine.RunEnded) *string { return &r.Time.Wider }),
	moment("reports-end", func(r *engine.RunEnded) *time.Time { return &r.Time.Ends }),
}}

// kinds are the kinds of lines but those of jobs.
var kinds = []kind{
	kindOf("clusterqueue", clusterQueueWords, newClusterQueue,
		func(q engine.ClusterQueue) engine.ClusterQueueSet {
			return engine.ClusterQueueSet{ClusterQueue: withGroups(q)}
		},
		func(e engine.ClusterQueueSet) (engine.ClusterQueue, string) { return e.ClusterQueue, e.Name }),
	kindOf("localqueue", localQueueWords, newLocalQueue,
		func(q engine.LocalQueue) engine.LocalQueueSet { return engine.LocalQueueSet{LocalQueue: q} },
		func(e engine.LocalQueueSet) (engine.LocalQueue, string) { return e.LocalQueue, formatKey(e.Key) }),
	kindOf("cohort", cohortWords, func(name string) engine.Cohort { return engine.Cohort{Name: name} },
		func(c engine.Cohort) engine.CohortSet { return engine.CohortSet{Cohort: c} },
		func(e engine.CohortSet) (engine.Cohort, string) { return e.Cohort, e.Name }),
	kindOf("flavor", flavorWords, func(name string) engine.Flavor { return engine.Flavor{Name: name} },
		func(f engine.Flavor) engine.FlavorSet { return engine.FlavorSet{Flavor: f} },
		func(e engine.FlavorSet) (engine.Flavor, string) { return e.Flavor, e.Name }),
	kindOf("topology", topologyWords, func(name string) place.Topology { return place.Topology{Name: name} },
		func(t place.Topology) engine.TopologySet { return engine.TopologySet{Topology: t} },
		func(e engine.TopologySet) (place.Topology, string) { return e.Topology, e.Name }),
	kindOf("namespace", namespaceWords, func(name string) engine.NamespaceSet { return engine.NamespaceSet{Name: name} },
		func(n engine.NamespaceSet) engine.NamespaceSet { return n },
		func(e engine.NamespaceSet) (engine.NamespaceSet, string) { return e, e.Name }),
	kindOf("node", nodeWords, newNode,
		func(n place.Node) engine.NodeSet { return engine.NodeSet{Node: n} },
		func(e engine.NodeSet) (place.Node, string) { return e.Node, e.Name }),
	kindOf("pod", podWords, func(name string) place.Pod { return place.Pod{Key: parseKey(name)} },
		func(p place.Pod) engine.PodBound { return engine.PodBound{Pod: p} },
		func(e engine.PodBound) (place.Pod, string) { return e.Pod, formatKey(e.Key) }),
	named("pod-ended", vocabulary[engine.PodEnded]{words: []word[engine.PodEnded]{
		key("job", func(e *engine.PodEnded) *engine.Key { return &e.Of.Workload }),
		text("set", func(e *engine.PodEnded) *string { return &e.Of.PodSet })}},
		func(e *engine.PodEnded) *engine.Key { return &e.Key }),
	named("pod-gone", vocabulary[engine.PodGone]{}, func(e *engine.PodGone) *engine.Key { return &e.Key }),
	named("unschedulable", vocabulary[engine.PodUnschedulable]{words: []word[engine.PodUnschedulable]{
		text("node", func(e *engine.PodUnschedulable) *string { return &e.Node }),
		text("why", func(e *engine.PodUnschedulable) *string { return &e.Why })}},
		func(e *engine.PodUnschedulable) *engine.Key { return &e.Workload }),
	kindOf("ended", runEndedWords,
		func(kind string) engine.RunEnded { return engine.RunEnded{Time: durations.Known{Kind: kind}} },
		func(r engine.RunEnded) engine.RunEnded { return r },
		func(e engine.RunEnded) (engine.RunEnded, string) { return e, e.Time.Kind }),
	named("gone", vocabulary[engine.WorkloadGone]{}, func(e *engine.WorkloadGone) *engine.Key { return &e.Key }),
	named("written", vocabulary[engine.Written]{words: []word[engine.Written]{
		uid(func(e *engine.Written) (engine.Key, *string) { return e.Key, &e.UID }),
		number("serial", func(e *engine.Written) *int64 { return &e.Serial }),
		number("version", func(e *engine.Written) *int64 { return &e.Version })}},
		func(e *engine.Written) *engine.Key { return &e.Key }),
	named("refused", vocabulary[engine.Refused]{words: []word[engine.Refused]{
		uid(func(e *engine.Refused) (engine.Key, *string) { return e.Key, &e.UID }),
		number("serial", func(e *engine.Refused) *int64 { return &e.Serial }),
		number("generation", func(e *engine.Refused) *int64 { return &e.Generation }),
		text("message", func(e *engine.Refused) *string { return &e.Message }),
		moment("at", func(e *engine.Refused) *time.Time { return &e.At })}},
		func(e *engine.Refused) *engine.Key { return &e.Key }),
	named("tried", vocabulary[engine.Tried]{words: []word[engine.Tried]{
		uid(func(e *engine.Tried) (engine.Key, *string) { return e.Key, &e.UID }),
		number("serial", func(e *engine.Tried) *int64 { return &e.Serial })}},
		func(e *engine.Tried) *engine.Key { return &e.Key }),
	named("failed", vocabulary[engine.Failed]{words: []word[engine.Failed]{
		uid(func(e *engine.Failed) (engine.Key, *string) { return e.Key, &e.UID }),
		number("serial", func(e *engine.Failed) *int64 { return &e.Serial })}},
		func(e *engine.Failed) *engine.Key { return &e.Key }),
	deleted("delete-clusterqueue",
		func(name string) engine.ClusterQueueDeleted { return engine.ClusterQueueDeleted{Name: name} },
		func(e engine.ClusterQueueDeleted) string { return e.Name }),
	deleted("delete-localqueue",
		func(name string) engine.LocalQueueDeleted { return engine.LocalQueueDeleted{Key: parseKey(name)} },
		func(e engine.LocalQueueDeleted) string { return formatKey(e.Key) }),
	deleted("delete-cohort", func(name string) engine.CohortDeleted { return engine.CohortDeleted{Name: name} },
		func(e engine.CohortDeleted) string { return e.Name }),
	deleted("delete-flavor", func(name string) engine.FlavorDeleted { return engine.FlavorDeleted{Name: name} },
		func(e engine.FlavorDeleted) string { return e.Name }),
	deleted("delete-topology", func(name string) engine.TopologyDeleted { return engine.TopologyDeleted{Name: name} },
		func(e engine.TopologyDeleted) string { return e.Name }),
	deleted("delete-namespace", func(name string) engine.NamespaceDeleted { return engine.NamespaceDeleted{Name: name} },
		func(e engine.NamespaceDeleted) string { return e.Name }),
	deleted("delete-node", func(name string) engine.NodeDeleted { return engine.NodeDeleted{Name: name} },
		func(e engine.NodeDeleted) string { return e.Name }),
}

// uid is a word for the UID of a job, which is NAME-uid unless a line says something else.
func uid[T any](at func(*T) (engine.Key, *string)) word[T] {
	return word[T]{"uid",
		func(of *T, text string) error {
			_, uid := at(of)
			*uid = text
			return nil
		},
		func(of *T) (string, bool) {
			job, uid := at(of)
			return *uid, *uid != uidOf(job)
		}}
}

// named returns the kind of line for events of type E that are about a namespaced object.
func named[E engine.Event](name string, v vocabulary[E], at func(*E) *engine.Key) kind {
	return kindOf(name, v, func(name string) (e E) {
		*at(&e) = parseKey(name)
		if len(v.words) > 0 && v.words[0].key == "uid" {
			_ = v.words[0].read(&e, uidOf(*at(&e)))
		}
		return e
	},
		func(e E) E { return e }, func(e E) (E, string) { return e, formatKey(*at(&e)) })
}

// deleted returns the kind of line for events of type E that say that an object was deleted.
func deleted[E engine.Event](name string, of func(string) E, object func(E) string) kind {
	return kindOf(name, vocabulary[E]{}, of, func(e E) E { return e }, func(e E) (E, string) { return e, object(e) })
}

func newClusterQueue(name string) engine.ClusterQueue {
	return engine.ClusterQueue{Name: name, Namespaces: &metav1.LabelSelector{}}
}

func withGroups(q engine.ClusterQueue) engine.ClusterQueue {
	if q.Groups == nil {
		q.Groups = usualGroups(q.Quotas)
	}
	return q
}

// newLocalQueue returns a LocalQueue that points to the ClusterQueue of the same name.
func newLocalQueue(name string) engine.LocalQueue {
	return engine.LocalQueue{Key: parseKey(name), ClusterQueue: parseKey(name).Name}
}

func newWorkload(name string) engine.Workload {
	return engine.Workload{Key: parseKey(name), UID: uidOf(parseKey(name)), Generation: 1, Queue: "q"}
}

func newNode(name string) place.Node {
	return place.Node{Name: name, Labels: map[string]string{place.Hostname: name},
		Allocatable: map[string]int64{place.Pods: podsOfNode}}
}

// lineOf returns the line of an event. An event for which there are no words becomes a line of JSON.
func lineOf(ev engine.Event) string {
	line := ""
	if w, ok := ev.(engine.WorkloadSet); ok {
		line = strings.Join(append([]string{"job", formatKey(w.Key)}, jobWords(w.Workload, engine.Workload{})...), " ")
	}
	for _, k := range kinds {
		if name, words, ok := k.write(ev); ok {
			line = strings.Join(append([]string{k.name, quoted(name)}, words...), " ")
		}
	}
	if again, err := eventOf(line); err == nil && sameEvent(ev, again) {
		return line
	}
	text, err := json.Marshal(ev)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("event %s %s", reflect.TypeOf(ev).Name(), text)
}

// sameEvent reports whether two events say the same.
func sameEvent(a, b engine.Event) bool {
	if !cmp.Equal(a, b, cmpopts.EquateEmpty()) {
		return false
	}
	w, ok := a.(engine.WorkloadSet)
	return !ok || slices.EqualFunc(w.PodSets, b.(engine.WorkloadSet).PodSets, func(a, b engine.PodSet) bool {
		return (a.OfNode == nil) == (b.OfNode == nil) // nil stands for what quota counts
	})
}

// eventOf returns the event of a line that depends on no earlier line.
func eventOf(line string) (engine.Event, error) {
	words := fields(line)
	if len(words) < 2 {
		return nil, fmt.Errorf("%q has no name", line)
	}
	name := unquoted(words[1])
	switch words[0] {
	case "job":
		w := newWorkload(name)
		err := readJob(&w, words[2:], nil)
		return engine.WorkloadSet{Workload: w}, err
	case "event":
		return jsonEvent(name, strings.Join(words[2:], " "))
	}
	for _, k := range kinds {
		if k.name == words[0] {
			return k.read(name, words[2:])
		}
	}
	return nil, fmt.Errorf("there is no event %q", words[0])
}

func jsonEvent(kind, text string) (engine.Event, error) {
	for _, ev := range []engine.Event{
		engine.ClusterQueueSet{}, engine.LocalQueueSet{}, engine.CohortSet{}, engine.FlavorSet{},
		engine.NamespaceSet{}, engine.WorkloadSet{}, engine.NodeSet{}, engine.PodBound{},
	} {
		if of := reflect.TypeOf(ev); of.Name() == kind {
			at := reflect.New(of)
			err := json.Unmarshal([]byte(text), at.Interface())
			return at.Elem().Interface().(engine.Event), err
		}
	}
	return nil, fmt.Errorf("there is no event %q", kind)
}

// readJob applies the words of a job's line. Words after "+ NAME" are about that pod set, others about the first one.
// After "holding QUEUE" follow the words of what the job holds, again by pod set.
func readJob(w *engine.Workload, words []string, decided *engine.Admission) error {
	if n := slices.Index(words, "holding"); n >= 0 && n+1 < len(words) {
		if err := readAdmission(w, words[n+1], words[n+2:], decided); err != nil {
			return err
		}
		words = words[:n]
	}
	w.PodSets = slices.Clone(w.PodSets)
	for n, part := range split(words) {
		if n == 0 {
			part = slices.DeleteFunc(part, func(text string) bool { return workloadWords.read(w, []string{text}) == nil })
			if len(part) == 0 && (len(w.PodSets) > 0 || slices.Contains(words, "+")) {
				continue
			}
			name := "main"
			if len(w.PodSets) > 0 {
				name = w.PodSets[0].Name
			}
			part = append([]string{name}, part...)
		}
		at := slices.IndexFunc(w.PodSets, func(ps engine.PodSet) bool { return ps.Name == part[0] })
		if at < 0 {
			at = len(w.PodSets)
			w.PodSets = append(w.PodSets, engine.PodSet{Name: part[0], Count: 1, PerPod: map[string]int64{}})
		}
		if err := podSetWords.read(&w.PodSets[at], part[1:]); err != nil {
			return err
		}
	}
	return nil
}

// split cuts the words at each "+".
func split(words []string) (parts [][]string) {
	parts = [][]string{nil}
	for _, word := range words {
		if word == "+" {
			parts = append(parts, nil)
			continue
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], word)
	}
	return parts
}

func readAdmission(w *engine.Workload, queue string, words []string, decided *engine.Admission) error {
	switch {
	case queue == "nothing":
		w.Admission = nil
		return nil
	case queue == "decided" && decided == nil:
		return fmt.Errorf("nothing was decided for %s", w.Key.Name)
	case queue == "decided":
		w.Admission = decided
		return nil
	}
	w.Admission = &engine.Admission{ClusterQueue: queue}
	for n, part := range split(words) {
		if n == 0 {
			if len(part) > 0 && strings.HasPrefix(part[0], "checks=") {
				w.Admission.Checks = strings.Split(strings.TrimPrefix(part[0], "checks="), ",")
				part = part[1:]
			}
			if len(part) == 0 && slices.Contains(words, "+") {
				continue
			}
			part = append([]string{"main"}, part...)
		}
		a := engine.Assignment{PodSet: part[0], Count: 1, Flavors: map[string]string{}, Usage: map[string]int64{}}
		if err := assignmentWords.read(&a, part[1:]); err != nil {
			return err
		}
		w.Admission.PodSets = append(w.Admission.PodSets, a)
	}
	return nil
}

// jobWords returns the words by which a job differs from another, or from no job.
func jobWords(w, from engine.Workload) (out []string) {
	for _, word := range workloadWords.words {
		if value, has := word.write(&w); from.Key == w.Key {
			if before, _ := word.write(&from); before != value {
				out = append(out, joined(word.key, value))
			}
		} else if has {
			out = append(out, joined(word.key, value))
		}
	}
	for n, ps := range w.PodSets {
		words := podSetWords.written(&ps)
		if from.Key == w.Key {
			words = changedWords(ps, from.PodSets[n])
			if len(words) == 0 {
				continue
			}
		}
		if n > 0 || ps.Name != "main" && from.Key != w.Key || len(words) == 0 && len(w.PodSets) > 1 {
			words = append([]string{"+", ps.Name}, words...)
		}
		out = append(out, words...)
	}
	if a := w.Admission; from.Key != w.Key && a != nil || from.Key == w.Key && !a.Equal(from.Admission) {
		out = append(out, admissionWords(a)...)
	}
	return out
}

func changedWords(ps, from engine.PodSet) (out []string) {
	for _, word := range podSetWords.words {
		value, _ := word.write(&ps)
		if before, _ := word.write(&from); before != value {
			out = append(out, joined(word.key, value))
		}
	}
	for _, text := range (vocabulary[engine.PodSet]{amounts: podSetWords.amounts}).written(&ps) {
		if !slices.Contains(podSetWords.written(&from), text) {
			out = append(out, text)
		}
	}
	return out
}

func admissionWords(a *engine.Admission) []string {
	if a == nil {
		return []string{"holding", "nothing"}
	}
	out := []string{"holding", a.ClusterQueue}
	if len(a.Checks) > 0 {
		out = append(out, "checks="+strings.Join(a.Checks, ","))
	}
	for n, ps := range a.PodSets {
		if n > 0 || ps.PodSet != "main" {
			out = append(out, "+", ps.PodSet)
		}
		out = append(out, assignmentWords.written(&ps)...)
	}
	return out
}
