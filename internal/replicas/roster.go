package replicas

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Roster is all replicas of a job, and its pods that belong to none.
type Roster struct {
	// Replicas in the order of groups and of indices.
	Replicas []Replica
	// Surplus pods belong to no replica.
	Surplus []*corev1.Pod

	groups map[string]span
}

// span is where the replicas of a group are.
type span struct{ from, count int32 }

// Look says how the replicas of a job fare. remembered says what the job's status
// remembers of each; pods are those that the job controls, in any order.
func Look(job string, groups []Group, remembered func(group string, index int32) Memory, pods []*corev1.Pod) *Roster {
	byName := make(map[string]*corev1.Pod, len(pods))
	for _, pod := range pods {
		byName[pod.Name] = pod
	}
	var total int32
	for _, g := range groups {
		total += g.Count
	}
	r := &Roster{Replicas: make([]Replica, 0, total), groups: make(map[string]span, len(groups))}
	for _, g := range groups {
		r.groups[g.Name] = span{int32(len(r.Replicas)), g.Count}
		for n := range g.Count {
			index := g.index(n)
			name := Name(job, g.Name, index)
			pod := byName[name]
			delete(byName, name)
			r.Replicas = append(r.Replicas, stand(Replica{Group: g.Name, Index: index, Name: name, Pod: pod}, remembered(g.Name, index), g.Restart))
		}
	}
	for _, pod := range byName {
		r.Surplus = append(r.Surplus, pod)
	}
	slices.SortFunc(r.Surplus, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return r
}

// Of is the replica with the index of a group, nil if there is none.
func (r *Roster) Of(group string, index int32) *Replica {
	s, ok := r.groups[group]
	if !ok || index < 0 {
		return nil
	}
	of := r.Replicas[s.from : s.from+s.count]
	// Indices ascend, so none is at a place beyond its own.
	n, found := slices.BinarySearchFunc(of[:min(index+1, s.count)], index, func(r Replica, index int32) int { return cmp.Compare(r.Index, index) })
	if !found {
		return nil
	}
	return &of[n]
}

// Restart begins another attempt of each replica that is due for one, and gives them
// as they were. The counts must be written before anything follows from them.
func (r *Roster) Restart() []Replica {
	var before []Replica
	for i := range r.Replicas {
		replica := &r.Replicas[i]
		if !replica.Again {
			continue
		}
		before = append(before, *replica)
		replica.Restarts++
		replica.Phase, replica.Again, replica.Ready = Creating, false, false
	}
	return before
}

// Outdated are pods that no replica needs any more and that nobody has deleted yet: of
// earlier attempts, and of no replica.
func (r *Roster) Outdated() []*corev1.Pod {
	var out []*corev1.Pod
	for i := range r.Replicas {
		if replica := &r.Replicas[i]; replica.past() && !IsGoing(replica.Pod) {
			out = append(out, replica.Pod)
		}
	}
	for _, pod := range r.Surplus {
		if !IsGoing(pod) {
			out = append(out, pod)
		}
	}
	return out
}

// Missing are the replicas that are to run and have no pod, not even one that is
// still going.
func (r *Roster) Missing() []*Replica {
	var out []*Replica
	for i := range r.Replicas {
		if replica := &r.Replicas[i]; replica.Pod == nil && !replica.Phase.Ended() {
			out = append(out, replica)
		}
	}
	return out
}

// Pods are all pods that nobody has deleted yet and that are as asked for: of every
// kind, or those that have not ended.
func (r *Roster) Pods(unfinishedOnly bool) []*corev1.Pod {
	var out []*corev1.Pod
	take := func(pod *corev1.Pod) {
		if pod != nil && !IsGoing(pod) && !(unfinishedOnly && HasEnded(pod)) {
			out = append(out, pod)
		}
	}
	for i := range r.Replicas {
		take(r.Replicas[i].Pod)
	}
	for _, pod := range r.Surplus {
		take(pod)
	}
	return out
}

// Active reports whether a pod may still use what it was granted.
func (r *Roster) Active() bool {
	for i := range r.Replicas {
		if pod := r.Replicas[i].Pod; pod != nil && !HasEnded(pod) {
			return true
		}
	}
	return slices.ContainsFunc(r.Surplus, func(pod *corev1.Pod) bool { return !HasEnded(pod) })
}

// All reports whether the condition holds for every replica.
func (r *Roster) All(holds func(*Replica) bool) bool {
	for i := range r.Replicas {
		if !holds(&r.Replicas[i]) {
			return false
		}
	}
	return true
}

// Finals counts, by group, the replicas that have ended and are not restarted.
func (r *Roster) Finals() map[string]int32 {
	out := map[string]int32{}
	for i := range r.Replicas {
		if r.Replicas[i].Final() {
			out[r.Replicas[i].Group]++
		}
	}
	return out
}
