package jobstest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/replicas"
)

// Cluster holds the children of a job in memory, with a small model of a kubelet.
type Cluster struct {
	T   *rapid.T
	Now time.Time
	// MayMake says why the object must not be created now, "" if it may be.
	MayMake func(o client.Object) string
	// Signalled is the exit code of a program that is told to terminate.
	Signalled int32

	children map[string]client.Object
	made     int
}

// NewCluster returns a Cluster without children.
func NewCluster(t *rapid.T) *Cluster {
	return &Cluster{T: t, Now: Now, MayMake: func(client.Object) string { return "" },
		children: map[string]client.Object{}}
}

// key returns the key of a child.
func key(o client.Object) string { return fmt.Sprintf("%T %s", o, o.GetName()) }

// Children returns all children in a fixed order.
func (c *Cluster) Children() []client.Object {
	var out []client.Object
	for _, key := range slices.Sorted(maps.Keys(c.children)) {
		out = append(out, c.children[key])
	}
	return out
}

// Pods returns the pods among them by name. They must not be modified.
func (c *Cluster) Pods() map[string]*corev1.Pod {
	out := map[string]*corev1.Pod{}
	for _, pod := range jobs.ChildrenOf[*corev1.Pod](c.Children()) {
		out[pod.Name] = pod
	}
	return out
}

// Put stores the child, replacing its earlier version.
func (c *Cluster) Put(o client.Object) { c.children[key(o)] = o }

// Do carries out at most most writes of the plan, as if the operator was killed then. The status is written by the
// function status, which reports whether it changed. Do reports whether anything was written.
func (c *Cluster) Do(p jobs.Plan, most int, status func() bool) bool {
	changed := false
	writeStatus := func() {
		if most > 0 && p.Status != nil && status() {
			most--
			changed = true
		}
	}
	if p.StatusFirst {
		writeStatus()
	}
	for _, w := range slices.Concat(p.First, p.Writes) {
		if most--; most < 0 {
			return changed
		}
		changed = true
		c.do(w)
	}
	if !p.StatusFirst {
		writeStatus()
	}
	return changed
}

func (c *Cluster) do(w write.Write) {
	o := copied(w.Object())
	had := c.children[key(o)]
	switch w.Verb() {
	case "create":
		if had != nil {
			c.T.Fatalf("%s is made though there is one", key(o))
		}
		if why := c.MayMake(o); why != "" {
			c.T.Fatalf("%s is made %s", key(o), why)
		}
		if pod, ok := o.(*corev1.Pod); ok {
			c.made++
			pod.UID, pod.CreationTimestamp = types.UID(fmt.Sprint(c.made)), metav1.NewTime(c.Now)
			pod.Status.Phase = corev1.PodPending
		}
		c.Put(o)
	case "delete":
		if had == nil || had.GetDeletionTimestamp() != nil {
			c.T.Fatalf("%s is deleted twice", key(o))
		}
		c.Delete(had)
	default:
		c.T.Fatalf("a plan %ss %s", w.Verb(), key(o))
	}
}

// Delete deletes an object as the API server does: a pod that has ended, or has no node, is gone at once.
func (c *Cluster) Delete(o client.Object) {
	pod, ok := o.(*corev1.Pod)
	if !ok || replicas.IsFinished(pod) || pod.Spec.NodeName == "" {
		delete(c.children, key(o))
		return
	}
	gone := pod.DeepCopy()
	gone.DeletionTimestamp, gone.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(c.Now.Add(30*time.Second))),
		ptr.To[int64](30)
	c.Put(gone)
}

// RunPods advances some of the pods by one step, two seconds later, and reports whether it changed any. code returns
// the exit code of a pod's program.
func (c *Cluster) RunPods(some func(*corev1.Pod) bool, code func(name string) int32) bool {
	changed := false
	c.Now = c.Now.Add(2 * time.Second)
	for _, pod := range jobs.ChildrenOf[*corev1.Pod](c.Children()) {
		if some(pod) && c.step(Pod{pod.DeepCopy()}, code) {
			changed = true
		}
	}
	return changed
}

func (c *Cluster) step(p Pod, code func(name string) int32) bool {
	going := p.DeletionTimestamp != nil
	switch {
	case going && p.Status.Phase == corev1.PodRunning:
		p.EndedAt(c.Signalled, c.Now)
	case going && replicas.IsFinished(p.Pod) && *p.DeletionGracePeriodSeconds > 0:
		// its node confirms
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(c.Now)), ptr.To[int64](0)
	case going:
		delete(c.children, key(p.Pod))
		return true
	case replicas.IsFinished(p.Pod):
		return false
	case p.Spec.NodeName == "":
		p.Spec.NodeName = "n"
	case p.Status.Phase == corev1.PodPending:
		p.Running()
	default:
		p.EndedAt(code(p.Name), c.Now)
	}
	c.Put(p.Pod)
	return true
}
