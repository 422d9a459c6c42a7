package reason

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
)

// Explanation is all that the engine knows of one workload's case, as it stands at
// the moment of asking. It is printed as it is: its JSON is documented in docs/cli.md
// and stable.
//
// It names workloads of other namespaces. Who shows it to people sees to it that they
// may see those.
type Explanation struct {
	State State `json:"state"`
	// Code and Message say why it waits; empty for what holds quota.
	Code    Code   `json:"code,omitempty"`
	Message string `json:"message,omitempty"`

	// Priority and Since give it its place among those that wait.
	Priority int32     `json:"priority"`
	Since    time.Time `json:"since"`
	// LocalQueue is what it names, ClusterQueue where that leads, and Path leads there
	// from the root cohort: /lab/team/queue.
	LocalQueue   string `json:"localQueue,omitempty"`
	ClusterQueue string `json:"clusterQueue,omitempty"`
	Path         string `json:"path,omitempty"`
	// Position counts from 1 among the Length that wait in the ClusterQueue; 0 for what
	// is not in line.
	Position int `json:"position,omitempty"`
	Length   int `json:"length"`
	// ByUsage tells that LocalQueues of the ClusterQueue that have used less of late come first there, before priority and time count.
	ByUsage bool `json:"byUsage,omitempty"`
	// Behind is the head of a strict queue, which nobody passes. In a queue by resource it is
	// the one that lacks what this one asks for too, and BehindLacks is what that lacks.
	Behind      *Name    `json:"behind,omitempty"`
	BehindLacks []string `json:"behindLacks,omitempty"`

	// AwaitsNodes tells that it was admitted by quota alone, because no node that was there
	// could ever hold it, and waits for nodes that come for its pods.
	AwaitsNodes bool `json:"awaitsNodes,omitempty"`

	// PodSets are what it asks, and what each flavor says to that.
	PodSets []PodSet `json:"podSets,omitempty"`
	// Together is what the nodes of the nearest flavors say of all pod sets at once, where they take each of them alone and have no
	// places for all.
	Together *place.Diagnosis `json:"together,omitempty"`
	// WouldPreempt are those who would be told to go for it now.
	WouldPreempt []Victim `json:"wouldPreempt,omitempty"`
	// WouldShrink are those who would be asked for pods, and go on with fewer.
	WouldShrink []Shrink `json:"wouldShrink,omitempty"`
	// Holders have what is short in the nearest flavors, the largest first.
	Holders []Holder `json:"holders,omitempty"`
	// WouldFitAfter are few of the holders after whose end it would fit: those that are
	// going, then the largest. Empty where no end of others' work helps.
	WouldFitAfter []Name `json:"wouldFitAfter,omitempty"`
	// Unready are those whose pods must be ready before it is admitted, where admissions wait for that.
	Unready []Name `json:"unready,omitempty"`
	// Awaits are those who were told to go and hold what is short yet.
	Awaits []Name `json:"awaits,omitempty"`
}

// Names are all workloads that it names, each once or more.
func (x *Explanation) Names() []Name {
	names := slices.Concat(x.WouldFitAfter, x.Awaits, x.Unready)
	for _, ps := range x.PodSets {
		for _, f := range ps.Flavors {
			names = append(names, f.WouldPreempt...)
		}
	}
	for _, v := range x.WouldPreempt {
		names = append(names, v.Name)
	}
	for _, s := range x.WouldShrink {
		names = append(names, s.Name)
	}
	for _, h := range x.Holders {
		names = append(names, h.Name)
	}
	if x.Behind != nil {
		names = append(names, *x.Behind)
	}
	return names
}

// State is where a workload stands.
type State string

const (
	// Aside: it is not in line, and is admitted whatever is free only once Code is mended.
	Aside State = "Aside"
	// Waiting: it is in line.
	Waiting State = "Waiting"
	// Promised: quota is kept for it, which others have been told to give back.
	Promised State = "Promised"
	// Reserving: it holds quota and waits for admission checks.
	Reserving State = "Reserving"
	// Admitted: it holds quota and may run.
	Admitted State = "Admitted"
	// Leaving: it was told to go and holds quota yet.
	Leaving State = "Leaving"
)

// Name is a workload's.
type Name struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// NameOf is the name of a key.
func NameOf(k order.Key) Name { return Name{Namespace: k.Namespace, Name: k.Name} }

// String is namespace/name.
func (n Name) String() string { return n.Namespace + "/" + n.Name }

// PodSet is what a number of equal pods asks.
type PodSet struct {
	Name string `json:"name"`
	// Pods are needed; Fewest is how few it can start with, absent if it needs all.
	Pods   int32               `json:"pods"`
	Fewest int32               `json:"fewest,omitempty"`
	PerPod corev1.ResourceList `json:"perPod,omitempty"`
	// Flavors has what each flavor of the queue says, in the order of the queue. With
	// several resource groups, each has its flavors.
	Flavors []FlavorVerdict `json:"flavors,omitempty"`
}

// Fit is how well a flavor would do.
type Fit string

const (
	// Fits: now.
	Fits Fit = "Fits"
	// FitsAfterEvicted: once those who were told to go have gone.
	FitsAfterEvicted Fit = "FitsAfterEvicted"
	// FitsByPreemption: if others are told to go, which is allowed.
	FitsByPreemption Fit = "FitsByPreemption"
	// Short: if others end by themselves.
	Short Fit = "Short"
	// TooLarge: not even if nobody used anything.
	TooLarge Fit = "TooLarge"
	// Refused: its nodes do not take these pods.
	Refused Fit = "Refused"
)

// FlavorVerdict is what one flavor says to one pod set.
type FlavorVerdict struct {
	Flavor string `json:"flavor"`
	Fit    Fit    `json:"fit"`
	// Nearest marks the flavor that is closest to a yes.
	Nearest bool `json:"nearest,omitempty"`
	// Borrows tells that quota of the cohort would be borrowed.
	Borrows bool `json:"borrows,omitempty"`
	// Message says why it is refused.
	Message string   `json:"message,omitempty"`
	Amounts []Amount `json:"amounts,omitempty"`
	// Nodes is what the nodes say of the pod set alone, whatever the quota: how many are
	// lost to each filter, the best domain, and what would help. Absent where pods are not
	// placed on nodes.
	Nodes *place.Diagnosis `json:"nodes,omitempty"`
	// WouldPreempt are those who would be told to go if this flavor were taken.
	WouldPreempt []Name `json:"wouldPreempt,omitempty"`
}

// Amount is one resource of a flavor in numbers.
type Amount struct {
	Resource string `json:"resource"`
	// Asked is for this pod set, Earlier for those before it in the same flavor: of as many pods as it could have, or else of as few as it
	// can start with.
	Asked   resource.Quantity `json:"asked"`
	Earlier resource.Quantity `json:"earlier"`
	// Free could be taken now, borrowing included; Capacity if nobody used anything. It
	// is absent where it is without bound.
	Free     resource.Quantity  `json:"free"`
	Capacity *resource.Quantity `json:"capacity,omitempty"`
	// Missing is how much more must become free.
	Missing resource.Quantity `json:"missing"`
}

// Victim is who would be told to go, and by which right.
type Victim struct {
	Name  `json:",inline"`
	Cause string `json:"cause"`
}

// Shrink is who would go on with fewer pods.
type Shrink struct {
	Name `json:",inline"`
	From int32 `json:"from"`
	To   int32 `json:"to"`
}

// Holder is who has what is short.
type Holder struct {
	Name         `json:",inline"`
	ClusterQueue string `json:"clusterQueue"`
	Priority     int32  `json:"priority"`
	// Holds are the short resources it has.
	Holds corev1.ResourceList `json:"holds"`
	// Leaving tells that it was told to go, Promised that it waits for what is kept for it.
	Leaving  bool `json:"leaving,omitempty"`
	Promised bool `json:"promised,omitempty"`
	// Preemptable tells whether the rules allow to tell it to go; NotPreemptable says why
	// not.
	Preemptable    bool   `json:"preemptable"`
	NotPreemptable string `json:"notPreemptable,omitempty"`
}
