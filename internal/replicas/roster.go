package replicas

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/pointers"
)

// Roster is all replicas of a job, and the job's pods that belong to none.
type Roster struct {
	job string
	// Replicas are ordered by group and index.
	Replicas []Replica
	// Surplus are the pods that belong to no replica, by name.
	Surplus []*corev1.Pod

	groups map[string]span
}

// span is the range of a group's replicas.
type span struct{ from, count int32 }

// Observe returns the roster of a job. recorded returns what the job's status records of a replica; pods are all that
// the job controls, in any order. The caller bounds the counts of the groups: each replica takes memory, whether it has
// a pod or not.
func Observe(job string, groups []Group, recorded func(group string, index int32) Record, pods []*corev1.Pod) *Roster {
	byName := make(map[string]*corev1.Pod, len(pods))
	for _, pod := range pods {
		byName[pod.Name] = pod
	}
	total := 0
	for _, g := range groups {
		total += int(g.Count)
	}
	r := &Roster{job: job, Replicas: make([]Replica, 0, total), groups: make(map[string]span, len(groups))}
	for _, g := range groups {
		r.groups[g.Name] = span{int32(len(r.Replicas)), g.Count}
		for n := range g.Count {
			index := g.index(n)
			name := Name(job, g.Name, index)
			pod := byName[name]
			delete(byName, name)
			r.Replicas = append(r.Replicas,
				observe(Replica{Group: g.Name, Index: index, Name: name, Pod: pod}, recorded(g.Name, index), g.Restart))
		}
	}
	for _, pod := range byName {
		r.Surplus = append(r.Surplus, pod)
	}
	slices.SortFunc(r.Surplus, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return r
}

// Group returns the replicas of the group, by ascending index; none if there is no group of that name.
func (r *Roster) Group(name string) []Replica {
	s := r.groups[name]
	return r.Replicas[s.from : s.from+s.count]
}

// Get returns the replica with the index in the group; nil if there is none.
func (r *Roster) Get(group string, index int32) *Replica {
	if index < 0 {
		return nil
	}
	members := r.Group(group)
	// Indices ascend, so none is at a position beyond its own value.
	n, found := slices.BinarySearchFunc(members[:min(int(index)+1, len(members))], index,
		func(r Replica, index int32) int { return cmp.Compare(r.Index, index) })
	if !found {
		return nil
	}
	return &members[n]
}

// Restart starts a new attempt of each replica that needs one and whose restart is due, and returns these
// replicas as they were before. next is when the next restart is due, zero if none waits. The caller must
// write the counts of restarts and the values of Settled to the status before it acts on the new state.
func (r *Roster) Restart(now time.Time) (before []Replica, next time.Time) {
	for replica := range pointers.To(r.Replicas) {
		if !replica.NeedsRestart {
			continue
		}
		if due := replica.restartDue(now); now.Before(due) {
			next = Earlier(next, due)
			continue
		}
		before = append(before, *replica)
		if replica.Pod != nil && Settled(replica.Pod) {
			replica.Settled = replica.Restarts
		}
		replica.Restarts++
		replica.Phase, replica.NeedsRestart, replica.Ready = Creating, false, false
	}
	return before, next
}

// Outdated returns the pods to delete: pods of earlier attempts and of no replica, unless they are terminating.
func (r *Roster) Outdated() []*corev1.Pod {
	var out []*corev1.Pod
	for replica := range pointers.To(r.Replicas) {
		if replica.outdated() && !IsTerminating(replica.Pod) {
			out = append(out, replica.Pod)
		}
	}
	for _, pod := range r.Surplus {
		if !IsTerminating(pod) {
			out = append(out, pod)
		}
	}
	return out
}

// Missing returns the replicas that need a pod and have none, not even a terminating one.
func (r *Roster) Missing() []*Replica {
	var out []*Replica
	for replica := range pointers.To(r.Replicas) {
		if replica.Pod == nil && !replica.Phase.Finished() {
			out = append(out, replica)
		}
	}
	return out
}

// Pods returns all pods that are not terminating; with unfinishedOnly, without finished ones.
func (r *Roster) Pods(unfinishedOnly bool) []*corev1.Pod {
	var out []*corev1.Pod
	take := func(pod *corev1.Pod) {
		if pod != nil && !IsTerminating(pod) && !(unfinishedOnly && IsFinished(pod)) {
			out = append(out, pod)
		}
	}
	for replica := range pointers.To(r.Replicas) {
		take(replica.Pod)
	}
	for _, pod := range r.Surplus {
		take(pod)
	}
	return out
}

// Active reports whether a pod may still use its resources.
func (r *Roster) Active() bool {
	for replica := range pointers.To(r.Replicas) {
		if pod := replica.Pod; pod != nil && !IsFinished(pod) {
			return true
		}
	}
	return slices.ContainsFunc(r.Surplus, func(pod *corev1.Pod) bool { return !IsFinished(pod) })
}

// First returns the first replica for which holds is true, nil if there is none.
func (r *Roster) First(holds func(*Replica) bool) *Replica {
	return pointers.First(r.Replicas, holds)
}

// Alive counts the pods of the group's replicas that have not finished.
func (r *Roster) Alive(group string) int32 {
	return pointers.Count(r.Group(group), func(r *Replica) bool { return r.Pod != nil && !IsFinished(r.Pod) })
}

// InUse counts the pods of the group that may still use quota, including surplus pods that have not terminated yet.
func (r *Roster) InUse(group string) int32 {
	n := r.Alive(group)
	for _, pod := range r.Surplus {
		if _, its := IndexOf(r.job, group, pod.Name); its && !IsFinished(pod) {
			n++
		}
	}
	return n
}

// All reports whether holds is true for every replica.
func (r *Roster) All(holds func(*Replica) bool) bool {
	return r.First(func(r *Replica) bool { return !holds(r) }) == nil
}

// FinalCounts returns the number of final replicas by group.
func (r *Roster) FinalCounts() map[string]int32 {
	out := map[string]int32{}
	for replica := range pointers.To(r.Replicas) {
		if replica.Final() {
			out[replica.Group]++
		}
	}
	return out
}
