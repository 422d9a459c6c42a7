package reason

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/musterhq/muster/internal/engine/place/find"
)

// Explanation is what the engine knows about one workload at the time of asking. It is printed as it is: its JSON is
// documented in docs/reference/cli.md and stable.
//
// It may name workloads of other namespaces. The caller must make sure that the user may see those.
type Explanation struct {
	State State `json:"state"`
	// Code and Message say why it waits; both are empty if it holds quota.
	Code    Code   `json:"code,omitempty"`
	Message string `json:"message,omitempty"`

	// Priority and Since determine its position among the waiting workloads.
	Priority int32     `json:"priority"`
	Since    time.Time `json:"since"`
	// LocalQueue is the queue that it names, ClusterQueue the one that this points to, and Path the path from the
	// root cohort: /lab/team/queue.
	LocalQueue   string `json:"localQueue,omitempty"`
	ClusterQueue string `json:"clusterQueue,omitempty"`
	Path         string `json:"path,omitempty"`
	// Position counts from 1 among the Length workloads that wait in the ClusterQueue; 0 if it is not in line.
	Position int `json:"position,omitempty"`
	Length   int `json:"length"`
	// ByUsage says that the ClusterQueue orders LocalQueues by their recent usage, least first, before priority and
	// time.
	ByUsage bool `json:"byUsage,omitempty"`
	// Behind is the head of a strict queue, which no workload passes.
	Behind *Name `json:"behind,omitempty"`
	// BehindCode is the code of the head of a strict queue that is never admitted with the present quota and nodes.
	BehindCode Code `json:"behindCode,omitempty"`

	// Start is its planned start: the earliest time at which quota and nodes would hold it if all others end as expected.
	// It is absent if none can be planned, or if its queue plans no starts.
	Start *Start `json:"start,omitempty"`
	// Delays is the workload before it whose planned start it would delay if it started now.
	Delays *Delayed `json:"delays,omitempty"`

	// AwaitsNodes says that it was admitted by quota alone, because no node at the time could ever hold it, and that
	// not all of its pods have a node yet.
	AwaitsNodes bool `json:"awaitsNodes,omitempty"`

	// Replacing is set if it lost some of its places and keeps its other pods.
	Replacing *Replacing `json:"replacing,omitempty"`

	// PodSets are its requests, with the result of each flavor.
	PodSets []PodSet `json:"podSets,omitempty"`
	// Together diagnoses the nodes of the nearest flavors for all pod sets at once. It is set if they have capacity
	// for each pod set alone but not for all of them.
	Together *find.Diagnosis `json:"together,omitempty"`
	// WouldPreempt are the workloads that would be evicted for it now.
	WouldPreempt []Victim `json:"wouldPreempt,omitempty"`
	// WouldShrink are the workloads that would continue with fewer pods.
	WouldShrink []Shrink `json:"wouldShrink,omitempty"`
	// Holders hold what is short in the nearest flavors, largest first.
	Holders []Holder `json:"holders,omitempty"`
	// WouldFitAfter is a small set of workloads after whose end it would have quota and capacity on nodes: those that are
	// leaving first, then the largest. It is empty if none is found.
	WouldFitAfter []Name `json:"wouldFitAfter,omitempty"`
	// Unready are the workloads whose pods must be ready first, if admissions wait for that.
	Unready []Name `json:"unready,omitempty"`
	// Awaits are the evicted workloads that still hold what is short.
	Awaits []Name `json:"awaits,omitempty"`
}

// Names returns all workloads that it names, possibly with duplicates.
func (e *Explanation) Names() []Name {
	names := slices.Concat(e.WouldFitAfter, e.Awaits, e.Unready)
	if e.Replacing != nil {
		names = append(names, e.Replacing.Awaits...)
	}
	for _, ps := range e.PodSets {
		for _, f := range ps.Flavors {
			names = append(names, f.WouldPreempt...)
		}
	}
	for _, v := range e.WouldPreempt {
		names = append(names, v.Name)
	}
	for _, s := range e.WouldShrink {
		names = append(names, s.Name)
	}
	for _, h := range e.Holders {
		names = append(names, h.Name)
	}
	if e.Behind != nil {
		names = append(names, *e.Behind)
	}
	if e.Delays != nil {
		names = append(names, e.Delays.Name)
	}
	if e.Start != nil {
		names = append(names, e.Start.After...)
	}
	return names
}

// Start is when a workload would start.
type Start struct {
	At time.Time `json:"at"`
	// Promised says that no estimate can delay it: all that must end before have limits, and nobody may pass it who does
	// not end before by a limit. Reserved says that nobody may pass who would delay it as expected. A start that is not
	// even reserved is what the engine expects if nobody else comes first.
	Promised bool `json:"promised,omitempty"`
	Reserved bool `json:"reserved,omitempty"`
	// After are the last workloads that have to end before.
	After []Name `json:"after,omitempty"`
}

// Delayed is a workload whose planned start another one would delay.
type Delayed struct {
	Name     `json:",inline"`
	At       time.Time `json:"at"`
	Promised bool      `json:"promised,omitempty"`
}

// Replacing says for what a workload waits that lost some of its places.
type Replacing struct {
	// Pods is the number of places that it lost, Lost their nodes.
	Pods int32    `json:"pods"`
	Lost []string `json:"lost"`
	// Awaits are the workloads that are leaving the nodes of the places that it gets instead.
	Awaits []Name `json:"awaits,omitempty"`
}

// State is the state of a workload.
type State string

const (
	// Aside: it is not in line, and not admitted before what Code says is fixed.
	Aside State = "Aside"
	// Waiting: it is in line.
	Waiting State = "Waiting"
	// Promised: it is promised quota that evicted workloads will release.
	Promised State = "Promised"
	// Reserving: it holds quota and waits for admission checks.
	Reserving State = "Reserving"
	// Admitted: it holds quota and may run.
	Admitted State = "Admitted"
	// Leaving: it is being evicted and still holds quota.
	Leaving State = "Leaving"
)

// Name is the name of a workload.
type Name struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String returns namespace/name.
func (n Name) String() string { return n.Namespace + "/" + n.Name }

// PodSet is the request of a number of equal pods.
type PodSet struct {
	Name string `json:"name"`
	// Pods is the number needed; Fewest is the smallest number that it can start with, absent if it needs all. Together is
	// how many pods the workload needs of whichever pod sets, absent if this one needs pods of its own.
	Pods     int32               `json:"pods"`
	Fewest   int32               `json:"fewest,omitempty"`
	Together int32               `json:"together,omitempty"`
	PerPod   corev1.ResourceList `json:"perPod,omitempty"`
	// Flavors has the result of each flavor, in the order of the queue. With several resource groups, each group has
	// its flavors.
	Flavors []FlavorVerdict `json:"flavors,omitempty"`
}

// Fit is how well a flavor fits.
type Fit string

const (
	// Fits: it fits now, by quota alone.
	Fits Fit = "Fits"
	// FitsAfterEvicted: it fits once workloads that are being evicted are gone.
	FitsAfterEvicted Fit = "FitsAfterEvicted"
	// FitsByPreemption: it fits if others are preempted, which the rules allow.
	FitsByPreemption Fit = "FitsByPreemption"
	// Short: its quota suffices once others end.
	Short Fit = "Short"
	// TooLarge: it would not fit even if nothing were in use.
	TooLarge Fit = "TooLarge"
	// Refused: the flavor's nodes do not accept these pods.
	Refused Fit = "Refused"
)

// FlavorVerdict is the result of one flavor for one pod set.
type FlavorVerdict struct {
	Flavor string `json:"flavor"`
	Fit    Fit    `json:"fit"`
	// Nearest marks the flavor that comes closest to fitting.
	Nearest bool `json:"nearest,omitempty"`
	// Borrows says that it would borrow quota of the cohort.
	Borrows bool `json:"borrows,omitempty"`
	// Message says why it is refused.
	Message string   `json:"message,omitempty"`
	Amounts []Amount `json:"amounts,omitempty"`
	// Nodes diagnoses the flavor's nodes for the pod set alone, regardless of quota: how many each filter excludes,
	// the best domain, and what would help. It is absent if pods are not placed on nodes.
	Nodes *find.Diagnosis `json:"nodes,omitempty"`
	// WouldPreempt are the workloads that would be evicted if this flavor were taken.
	WouldPreempt []Name `json:"wouldPreempt,omitempty"`
}

// Amount is the numbers of one resource of a flavor.
type Amount struct {
	Resource string `json:"resource"`
	// Asked is for this pod set, Earlier for those before it in the same flavor, with as many pods as it could have,
	// or else with the fewest that it can start with.
	Asked   resource.Quantity `json:"asked"`
	Earlier resource.Quantity `json:"earlier"`
	// Free is what could be taken now, including what can be borrowed; Capacity is what could be taken if nothing
	// were in use, absent if unlimited.
	Free     resource.Quantity  `json:"free"`
	Capacity *resource.Quantity `json:"capacity,omitempty"`
	// Missing is how much more must become free.
	Missing resource.Quantity `json:"missing"`
}

// Victim is a workload that would be evicted, and the reason.
type Victim struct {
	Name  `json:",inline"`
	Cause string `json:"cause"`
}

// Shrink is a workload that would continue with fewer pods.
type Shrink struct {
	Name `json:",inline"`
	From int32 `json:"from"`
	To   int32 `json:"to"`
}

// Holder is a workload that holds what is short.
type Holder struct {
	Name         `json:",inline"`
	ClusterQueue string `json:"clusterQueue"`
	Priority     int32  `json:"priority"`
	// Holds are the resources that are short which it holds.
	Holds corev1.ResourceList `json:"holds"`
	// Leaving says that it is being evicted, Promised that it waits for what was promised to it.
	Leaving  bool `json:"leaving,omitempty"`
	Promised bool `json:"promised,omitempty"`
	// Preemptable says whether the rules allow evicting it; NotPreemptable says why not.
	Preemptable    bool   `json:"preemptable"`
	NotPreemptable string `json:"notPreemptable,omitempty"`
}
