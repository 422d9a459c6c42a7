package engine_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// levels are the short names of node labels.
var levels = map[string]string{"rack": "example.com/rack", "hostname": place.Hostname}

func parseLevel(s string) (string, error) {
	if label, ok := levels[s]; ok {
		return label, nil
	}
	return s, nil
}

func formatLevel(label string) string {
	for short, long := range levels {
		if long == label {
			return short
		}
	}
	return label
}

func level[T any](key string, at func(*T) *string) word[T] {
	return wordOf(key, at, parseLevel, formatLevel)
}

var rules = []string{"never", "lower-priority", "lower-or-newer-equal-priority", "any"}

var clusterQueueWords = vocabulary[engine.ClusterQueue]{
	words: []word[engine.ClusterQueue]{
		text("cohort", func(q *engine.ClusterQueue) *string { return &q.Cohort }),
		choice("strategy", func(q *engine.ClusterQueue) *engine.Strategy { return &q.Strategy },
			"best-effort", "strict"),
		choice("within-queue", func(q *engine.ClusterQueue) *preempt.Rule { return &q.Preemption.WithinQueue }, rules...),
		choice("reclaim", func(q *engine.ClusterQueue) *preempt.Rule { return &q.Preemption.Reclaim }, rules...),
		toggle("while-borrowing", func(q *engine.ClusterQueue) *bool { return &q.Preemption.WhileBorrowing }),
		asJSON("threshold", func(q *engine.ClusterQueue) **int32 { return &q.Preemption.Threshold }),
		number("rank", func(q *engine.ClusterQueue) *int32 { return &q.Preemption.Rank }),
		toggle("protected", func(q *engine.ClusterQueue) *bool { return &q.Preemption.Protected }),
		toggle("next-flavor-before-borrowing",
			func(q *engine.ClusterQueue) *bool { return &q.Fungibility.NextBeforeBorrowing }),
		toggle("next-flavor-before-preempting",
			func(q *engine.ClusterQueue) *bool { return &q.Fungibility.NextBeforePreempting }),
		toggle("preempt-rather-than-borrow",
			func(q *engine.ClusterQueue) *bool { return &q.Fungibility.PreemptsRatherThanBorrows }),
		toggle("covers-all", func(q *engine.ClusterQueue) *bool { return &q.CoversAll }),
		toggle("on-demand", func(q *engine.ClusterQueue) *bool { return &q.OnDemand }),
		toggle("by-usage", func(q *engine.ClusterQueue) *bool { return &q.ByUsage }),
		toggle("backfill", func(q *engine.ClusterQueue) *bool { return &q.Backfill }),
		duration("max-duration", func(q *engine.ClusterQueue) *time.Duration { return &q.Durations.Max }),
		duration("default-duration", func(q *engine.ClusterQueue) *time.Duration { return &q.Durations.Default }),
		toggle("stopped", func(q *engine.ClusterQueue) *bool { return &q.Stopped }),
		text("inactive", func(q *engine.ClusterQueue) *string { return &q.Inactive }),
		asJSON("checks", func(q *engine.ClusterQueue) *[]engine.Check { return &q.Checks }),
		weight(func(q *engine.ClusterQueue) **quota.Weight { return &q.Weight }),
		{"namespaces", readNamespaces, writeNamespaces},
		{"groups", readGroups, writeGroups},
	},
	amounts: []amountWords[engine.ClusterQueue]{quotas(func(q *engine.ClusterQueue) *quota.Quotas { return &q.Quotas })},
}

var localQueueWords = vocabulary[engine.LocalQueue]{words: []word[engine.LocalQueue]{
	{"clusterqueue", func(q *engine.LocalQueue, name string) error { q.ClusterQueue = name; return nil },
		func(q *engine.LocalQueue) (string, bool) { return q.ClusterQueue, q.ClusterQueue != q.Key.Name }},
	toggle("stopped", func(q *engine.LocalQueue) *bool { return &q.Stopped }),
	toggle("terminating", func(q *engine.LocalQueue) *bool { return &q.Terminating }),
	duration("max-duration", func(q *engine.LocalQueue) *time.Duration { return &q.Durations.Max }),
	duration("default-duration", func(q *engine.LocalQueue) *time.Duration { return &q.Durations.Default }),
	weight(func(q *engine.LocalQueue) **quota.Weight { return &q.Weight }),
	asJSON("consumed", func(q *engine.LocalQueue) *map[string]float64 { return (*map[string]float64)(&q.Consumed) }),
	moment("consumed-at", func(q *engine.LocalQueue) *time.Time { return &q.ConsumedAt }),
}}

var cohortWords = vocabulary[engine.Cohort]{
	words: []word[engine.Cohort]{
		text("parent", func(c *engine.Cohort) *string { return &c.Parent }),
		weight(func(c *engine.Cohort) **quota.Weight { return &c.Weight }),
	},
	amounts: []amountWords[engine.Cohort]{quotas(func(c *engine.Cohort) *quota.Quotas { return &c.Quotas })},
}

var flavorWords = vocabulary[engine.Flavor]{
	words: []word[engine.Flavor]{
		text("topology", func(f *engine.Flavor) *string { return &f.Topology }),
		taints(func(f *engine.Flavor) *[]corev1.Taint { return &f.NodeTaints }),
		tolerations(func(f *engine.Flavor) *[]corev1.Toleration { return &f.Tolerations }),
	},
	amounts: []amountWords[engine.Flavor]{
		labels("label:", func(f *engine.Flavor) *map[string]string { return &f.NodeLabels }),
	},
}

var topologyWords = vocabulary[place.Topology]{words: []word[place.Topology]{
	list("levels", func(t *place.Topology) *[]string { return &t.Levels }, parseLevel, formatLevel),
}}

var namespaceWords = vocabulary[engine.NamespaceSet]{amounts: []amountWords[engine.NamespaceSet]{
	labels("label:", func(n *engine.NamespaceSet) *map[string]string { return (*map[string]string)(&n.Labels) }),
}}

// A node has its name as its hostname, and capacity for ten pods, unless its line says something else.
var nodeWords = vocabulary[place.Node]{
	words: []word[place.Node]{
		{"rack", func(n *place.Node, name string) error { set(&n.Labels, levels["rack"], name); return nil },
			func(n *place.Node) (string, bool) { name, ok := n.Labels[levels["rack"]]; return name, ok }},
		taints(func(n *place.Node) *[]corev1.Taint { return &n.Taints }),
		toggle("cordoned", func(n *place.Node) *bool { return &n.Cordoned }),
		toggle("failed", func(n *place.Node) *bool { return &n.Failed }),
		{"pods", func(n *place.Node, text string) error {
			pods, err := strconv.ParseInt(text, 10, 64)
			set(&n.Allocatable, place.Pods, pods)
			return err
		}, func(n *place.Node) (string, bool) {
			return fmt.Sprint(n.Allocatable[place.Pods]), n.Allocatable[place.Pods] != podsOfNode
		}},
	},
	amounts: []amountWords[place.Node]{
		labels("label:", func(n *place.Node) *map[string]string { return &n.Labels }).except(
			func(n *place.Node, label string) bool {
				return label == levels["rack"] || label == place.Hostname && n.Labels[label] == n.Name
			}),
		resources("", func(n *place.Node) *map[string]int64 { return &n.Allocatable }).except(
			func(_ *place.Node, resource string) bool { return resource == place.Pods }),
	},
}

const podsOfNode = 10

// A pod that has a job is of its pod set main, unless its line says something else.
var podWords = vocabulary[place.Pod]{
	words: []word[place.Pod]{
		{"job", func(p *place.Pod, job string) error { p.Workload, p.PodSet = parseKey(job), "main"; return nil },
			func(p *place.Pod) (string, bool) { return formatKey(p.Workload), p.Workload != engine.Key{} }},
		{"set", func(p *place.Pod, set string) error { p.PodSet = set; return nil },
			func(p *place.Pod) (string, bool) { return p.PodSet, p.Workload != engine.Key{} && p.PodSet != "main" }},
		text("node", func(p *place.Pod) *string { return &p.Node }),
		{"rank", func(p *place.Pod, text string) error {
			rank, err := strconv.Atoi(text)
			p.Rank, p.HasRank = int32(rank), true
			return err
		}, func(p *place.Pod) (string, bool) { return fmt.Sprint(p.Rank), p.HasRank }},
		asJSON("part", func(p *place.Pod) *place.Part { return &p.Part }),
		asJSON("host-ports", func(p *place.Pod) *[]place.HostPort { return &p.HostPorts }),
		level("exclusive", func(p *place.Pod) *string { return &p.ExclusiveKey }),
		toggle("terminating", func(p *place.Pod) *bool { return &p.Terminating }),
		toggle("resident", func(p *place.Pod) *bool { return &p.Resident }),
	},
	amounts: []amountWords[place.Pod]{resources("", func(p *place.Pod) *map[string]int64 { return &p.Requests })},
}

// A workload has the UID NAME-uid and is of generation 1, unless its line says something else.
var workloadWords = vocabulary[engine.Workload]{words: []word[engine.Workload]{
	{"uid", func(w *engine.Workload, uid string) error { w.UID = uid; return nil },
		func(w *engine.Workload) (string, bool) { return w.UID, w.UID != uidOf(w.Key) }},
	numberOr(1, "generation", func(w *engine.Workload) *int64 { return &w.Generation }),
	number("version", func(w *engine.Workload) *int64 { return &w.Version }),
	{"queue", func(w *engine.Workload, queue string) error { w.Queue = queue; return nil },
		func(w *engine.Workload) (string, bool) { return w.Queue, w.Queue != "q" }},
	number("priority", func(w *engine.Workload) *int32 { return &w.Priority }),
	moment("queued", func(w *engine.Workload) *time.Time { return &w.QueuedAt }),
	toggle("inactive", func(w *engine.Workload) *bool { return &w.Inactive }),
	text("backs-off", func(w *engine.Workload) *string { return &w.BackoffReason }),
	toggle("pods-without-quota", func(w *engine.Workload) *bool { return &w.Unheld }),
	text("gated", func(w *engine.Workload) *string { return &w.Gated }),
	text("refused", func(w *engine.Workload) *string { return &w.Refused }),
	duration("limit", func(w *engine.Workload) *time.Duration { return &w.Time.Limit }),
	duration("expected", func(w *engine.Workload) *time.Duration { return &w.Time.Expected }),
	duration("ran", func(w *engine.Workload) *time.Duration { return &w.Time.Ran }),
	text("kind", func(w *engine.Workload) *string { return &w.Time.Kind }),
	text("wider-kind", func(w *engine.Workload) *string { return &w.Time.Wider }),
	moment("reports-end", func(w *engine.Workload) *time.Time { return &w.Time.Ends }),
	moment("admitted-at", func(w *engine.Workload) *time.Time { return &w.AdmittedAt }),
	moment("reserved", func(w *engine.Workload) *time.Time { return &w.ReservedAt }),
	toggle("admitted", func(w *engine.Workload) *bool { return &w.Admitted }),
	toggle("ready", func(w *engine.Workload) *bool { return &w.Ready }),
	toggle("evicted", func(w *engine.Workload) *bool { return &w.Evicted }),
	toggle("lost-nodes", func(w *engine.Workload) *bool { return &w.LostNodes }),
	moment("resized", func(w *engine.Workload) *time.Time { return &w.ResizedAt }),
	text("reported", func(w *engine.Workload) *string { return (*string)(&w.ReportedCode) }),
	text("reported-message", func(w *engine.Workload) *string { return &w.ReportedMessage }),
}}

func uidOf(k engine.Key) string { return k.Name + "-uid" }

var podSetWords = vocabulary[engine.PodSet]{
	words: []word[engine.PodSet]{
		numberOr(1, "pods", func(ps *engine.PodSet) *int32 { return &ps.Count }),
		number("min", func(ps *engine.PodSet) *int32 { return &ps.MinCount }),
		number("together", func(ps *engine.PodSet) *int32 { return &ps.Together }),
		wordOf("elastic", func(ps *engine.PodSet) *float64 { return &ps.Elastic },
			func(s string) (float64, error) { return strconv.ParseFloat(s, 64) },
			func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }),
		number("wants", func(ps *engine.PodSet) *int32 { return &ps.Wanted }),
		number("ended", func(ps *engine.PodSet) *int32 { return &ps.Reclaimable }),
		asJSON("affinity", func(ps *engine.PodSet) **corev1.NodeAffinity { return &ps.Affinity }),
		tolerations(func(ps *engine.PodSet) *[]corev1.Toleration { return &ps.Tolerations }),
		text("on-node", func(ps *engine.PodSet) *string { return &ps.NodeName }),
		toggle("unpinned", func(ps *engine.PodSet) *bool { return &ps.Unpinned }),
		asJSON("host-ports", func(ps *engine.PodSet) *[]place.HostPort { return &ps.HostPorts }),
		level("exclusive", func(ps *engine.PodSet) *string { return &ps.ExclusiveKey }),
		asJSON("bounds", func(ps *engine.PodSet) *[]place.Bound { return &ps.Bounds }),
		{"within", func(ps *engine.PodSet, s string) error {
			return nearness(ps, s, true)
		}, func(ps *engine.PodSet) (string, bool) {
			return nearnessOf(ps, true)
		}},
		{"near", func(ps *engine.PodSet, s string) error {
			return nearness(ps, s, false)
		}, func(ps *engine.PodSet) (string, bool) {
			return nearnessOf(ps, false)
		}},
		{"group", func(ps *engine.PodSet, s string) error {
			topologyOf(ps).Group = s
			return nil
		}, func(ps *engine.PodSet) (string, bool) {
			return ptr.Deref(ps.Topology, flavor.TopologyRequest{}).Group, ps.Topology != nil && ps.Topology.Group != ""
		}},
		{"slices", func(ps *engine.PodSet, s string) error {
			return slicesWord.read(topologyOf(ps), s)
		}, func(ps *engine.PodSet) (string, bool) {
			return slicesWord.write(ptr.To(ptr.Deref(ps.Topology, flavor.TopologyRequest{})))
		}},
	},
	amounts: []amountWords[engine.PodSet]{
		resources("node:", func(ps *engine.PodSet) *map[string]int64 { return &ps.OfNode }),
		labels("selects:", func(ps *engine.PodSet) *map[string]string { return &ps.NodeSelector }),
		resources("", func(ps *engine.PodSet) *map[string]int64 { return &ps.PerPod }),
	},
}

// topologyOf returns the topology request of the pod set, a copy of the former one.
func topologyOf(ps *engine.PodSet) *flavor.TopologyRequest {
	ps.Topology = ptr.To(ptr.Deref(ps.Topology, flavor.TopologyRequest{}))
	return ps.Topology
}

func nearness(ps *engine.PodSet, text string, must bool) (err error) {
	request := topologyOf(ps)
	request.Mandatory = must
	request.Level, err = parseLevel(text)
	return err
}

func nearnessOf(ps *engine.PodSet, must bool) (string, bool) {
	if ps.Topology == nil || ps.Topology.Mandatory != must {
		return "", false
	}
	return formatLevel(ps.Topology.Level), ps.Topology.Level != ""
}

var slicesWord = list("slices", func(r *flavor.TopologyRequest) *[]place.Slice { return &r.Slices },
	func(s string) (out place.Slice, err error) {
		name, size, _ := strings.Cut(s, "*")
		pods, err := strconv.Atoi(size)
		out.Level, _ = parseLevel(name)
		out.Size = int32(pods)
		return out, err
	},
	func(s place.Slice) string { return fmt.Sprintf("%s*%d", formatLevel(s.Level), s.Size) })

// assignmentWords has the words of what a pod set holds, in which cpu=4@default is usage in a flavor.
var assignmentWords = vocabulary[engine.Assignment]{
	words: []word[engine.Assignment]{
		numberOr(1, "pods", func(a *engine.Assignment) *int32 { return &a.Count }),
		list("places", func(a *engine.Assignment) *[]place.NodeCount { return &a.Places },
			func(s string) (place.NodeCount, error) {
				name, pods, several := strings.Cut(s, "*")
				if !several {
					return place.NodeCount{Node: name, Count: 1}, nil
				}
				count, err := strconv.Atoi(pods)
				return place.NodeCount{Node: name, Count: int32(count)}, err
			},
			func(p place.NodeCount) string {
				if p.Count == 1 {
					return p.Node
				}
				return fmt.Sprintf("%s*%d", p.Node, p.Count)
			}),
		asJSON("domains", func(a *engine.Assignment) *[]flavor.DomainCount { return &a.Within }),
	},
	amounts: []amountWords[engine.Assignment]{
		resources("surplus:", func(a *engine.Assignment) *map[string]int64 { return &a.Surplus }),
		{read: func(a *engine.Assignment, resource, value string) error {
			amount, of, _ := strings.Cut(value, "@")
			n, err := strconv.ParseInt(amount, 10, 64)
			set(&a.Usage, resource, n)
			set(&a.Flavors, resource, of)
			return err
		}, write: func(a *engine.Assignment) map[string]string {
			out := map[string]string{}
			for resource, amount := range a.Usage {
				out[resource] = fmt.Sprintf("%d@%s", amount, a.Flavors[resource])
			}
			return out
		}},
	},
}

func weight[T any](at func(*T) **quota.Weight) word[T] {
	return word[T]{"weight",
		func(of *T, text string) error {
			value, err := strconv.ParseFloat(text, 64)
			*at(of) = ptr.To(quota.Weight(math.Round(value * float64(quota.One))))
			return err
		},
		func(of *T) (string, bool) {
			w := *at(of)
			return strconv.FormatFloat(float64(ptr.Deref(w, 0))/float64(quota.One), 'f', -1, 64), w != nil
		}}
}

// taints is a word for taints, as in gpu=yes:NoSchedule,spot:NoSchedule.
func taints[T any](at func(*T) *[]corev1.Taint) word[T] {
	return list("taints", at,
		func(s string) (corev1.Taint, error) {
			name, effect, _ := strings.Cut(s, ":")
			key, value, _ := strings.Cut(name, "=")
			return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}, nil
		},
		func(t corev1.Taint) string {
			if t.Value == "" {
				return t.Key + ":" + string(t.Effect)
			}
			return t.Key + "=" + t.Value + ":" + string(t.Effect)
		})
}

// tolerations is a word for tolerations of taints by key.
func tolerations[T any](at func(*T) *[]corev1.Toleration) word[T] {
	return list("tolerates", at,
		func(s string) (corev1.Toleration, error) {
			return corev1.Toleration{Key: s, Operator: corev1.TolerationOpExists}, nil
		},
		func(t corev1.Toleration) string { return t.Key })
}

// quotas are words for quotas, as in cpu=4,borrow:2,lend:0 or, in another flavor than default, spot:cpu=4.
func quotas[T any](at func(*T) *quota.Quotas) amountWords[T] {
	return amountWords[T]{labels: true,
		read: func(of *T, name, value string) error {
			fr := quota.FlavorResource{Flavor: "default", Resource: name}
			if !isResource(name) {
				return fmt.Errorf("there is no word %q", name)
			}
			name = strings.Replace(name, "resource:", "", 1)
			if flavor, resource, other := strings.Cut(name, ":"); other {
				fr = quota.FlavorResource{Flavor: flavor, Resource: resource}
			} else {
				fr.Resource = name
			}
			limits, err := parseLimits(value)
			*at(of) = maps.Clone(*at(of))
			if *at(of) == nil {
				*at(of) = quota.Quotas{}
			}
			(*at(of))[fr] = limits
			return err
		},
		write: func(of *T) map[string]string {
			out := map[string]string{}
			for fr, limits := range *at(of) {
				name := fr.Resource
				if !isResource(name) {
					name = "resource:" + name
				}
				if fr.Flavor != "default" {
					name = fr.Flavor + ":" + name
				}
				out[name] = formatLimits(limits)
			}
			return out
		}}
}

func parseLimits(text string) (out quota.Limits, err error) {
	out.Borrowing, out.Lending = quota.Unlimited, quota.Unlimited
	for n, part := range strings.Split(text, ",") {
		name, amount, _ := strings.Cut(part, ":")
		at := map[string]*int64{"borrow": &out.Borrowing, "lend": &out.Lending}[name]
		switch {
		case n == 0 && part == "unlimited":
			out.Nominal = quota.Unlimited
		case n == 0:
			out.Nominal, err = strconv.ParseInt(part, 10, 64)
		case at != nil:
			*at, err = strconv.ParseInt(amount, 10, 64)
		case part == "unnamed":
			out.Unnamed = true
		default:
			err = fmt.Errorf("%s is no limit", part)
		}
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

func formatLimits(l quota.Limits) string {
	out := fmt.Sprint(l.Nominal)
	if l.Nominal == quota.Unlimited {
		out = "unlimited"
	}
	if l.Borrowing != quota.Unlimited {
		out += fmt.Sprintf(",borrow:%d", l.Borrowing)
	}
	if l.Lending != quota.Unlimited {
		out += fmt.Sprintf(",lend:%d", l.Lending)
	}
	if l.Unnamed {
		out += ",unnamed"
	}
	return out
}

// readNamespaces reads which namespaces a queue accepts: none, or those with one label, as in team:red. A queue without
// the word accepts all.
func readNamespaces(q *engine.ClusterQueue, text string) error {
	label, value, ok := strings.Cut(text, ":")
	switch {
	case ok:
		q.Namespaces = &metav1.LabelSelector{MatchLabels: map[string]string{label: value}}
	case text == "none":
		q.Namespaces = nil
	default:
		return fmt.Errorf("%q is neither none nor a label", text)
	}
	return nil
}

func writeNamespaces(q *engine.ClusterQueue) (string, bool) {
	if q.Namespaces == nil {
		return "none", true
	}
	for label, value := range q.Namespaces.MatchLabels {
		return label + ":" + value, true
	}
	return "", false
}

// readGroups reads resource groups, as in cpu,memory:spot,default;gpu:default.
func readGroups(q *engine.ClusterQueue, text string) error {
	q.Groups = nil
	for group := range strings.SplitSeq(text, ";") {
		resources, flavors, ok := strings.Cut(group, ":")
		if !ok {
			return fmt.Errorf("%q has no flavors", group)
		}
		q.Groups = append(q.Groups,
			flavor.Group{Resources: strings.Split(resources, ","), Flavors: strings.Split(flavors, ",")})
	}
	return nil
}

func writeGroups(q *engine.ClusterQueue) (string, bool) {
	var out []string
	for _, g := range q.Groups {
		out = append(out, strings.Join(g.Resources, ",")+":"+strings.Join(g.Flavors, ","))
	}
	usual := engine.ClusterQueue{Quotas: q.Quotas}
	usual.Groups = usualGroups(usual.Quotas)
	same := slices.EqualFunc(q.Groups, usual.Groups, func(a, b flavor.Group) bool {
		return slices.Equal(a.Resources, b.Resources) && slices.Equal(a.Flavors, b.Flavors)
	})
	return strings.Join(out, ";"), !same && len(out) > 0
}

// usualGroups returns the groups of a queue whose line names none: one with all of its resources and flavors, by name.
func usualGroups(of quota.Quotas) []flavor.Group {
	var all flavor.Group
	for fr := range of {
		all.Resources, all.Flavors = append(all.Resources, fr.Resource), append(all.Flavors, fr.Flavor)
	}
	if len(all.Resources) == 0 {
		return nil
	}
	for _, names := range []*[]string{&all.Resources, &all.Flavors} {
		slices.Sort(*names)
		*names = slices.Compact(*names)
	}
	return []flavor.Group{all}
}
