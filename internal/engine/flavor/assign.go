package flavor

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// pods is the resource that counts pods. Users cannot request it; a queue that
// has quota for it is asked for the count.
const pods = string(corev1.ResourcePods)

// Assign chooses flavors for all pod sets or for none. What earlier pod sets of
// the same workload were given counts against the later ones. The second result
// is why not, and is zero if the first is complete.
func Assign(podSets []PodSet, groups []Group, flavors map[string]Flavor, room Room) ([]Assignment, reason.Reason) {
	taken := map[quota.FlavorResource]int64{}
	out := make([]Assignment, 0, len(podSets))
	for _, ps := range podSets {
		a := Assignment{PodSet: ps.Name, Count: ps.Count, Flavors: map[string]string{}, Usage: map[string]int64{}}
		if why := uncovered(ps, groups); why.Code != reason.None {
			return nil, why
		}
		for _, g := range groups {
			asked := requests(ps, g)
			if len(asked) == 0 {
				continue
			}
			name, verdicts := choose(ps, asked, g, flavors, room, taken)
			if name == "" {
				return nil, reason.Reason{Code: nearest(verdicts), PodSet: ps.Name, Flavors: verdicts}
			}
			for resource, amount := range asked {
				fr := quota.FlavorResource{Flavor: name, Resource: resource}
				taken[fr] = quota.Add(taken[fr], amount)
				a.Flavors[resource], a.Usage[resource] = name, amount
			}
		}
		out = append(out, a)
	}
	return out, reason.Reason{}
}

// requests is what all pods of the set ask of the group's resources.
func requests(ps PodSet, g Group) map[string]int64 {
	out := map[string]int64{}
	for _, resource := range g.Resources {
		if resource == pods {
			out[resource] = int64(ps.Count)
		} else if amount, ok := ps.PerPod[resource]; ok {
			out[resource] = quota.Times(amount, ps.Count)
		}
	}
	return out
}

// uncovered says which requested resource no group of the queue has. Zero of it is
// nothing to ask for.
func uncovered(ps PodSet, groups []Group) reason.Reason {
	for _, resource := range sortedKeys(ps.PerPod) {
		if ps.PerPod[resource] == 0 {
			continue
		}
		covered := slices.ContainsFunc(groups, func(g Group) bool { return slices.Contains(g.Resources, resource) })
		if !covered {
			return reason.Reason{
				Code:   reason.NoMatchingFlavor,
				PodSet: ps.Name,
				Detail: fmt.Sprintf("resource %s unavailable in ClusterQueue", resource),
			}
		}
	}
	return reason.Reason{}
}

// choose returns the first flavor of the group that takes everything asked, or ""
// and what each of them said.
func choose(ps PodSet, asked map[string]int64, g Group, flavors map[string]Flavor, room Room, taken map[quota.FlavorResource]int64) (string, []reason.Verdict) {
	var verdicts []reason.Verdict
	for _, name := range g.Flavors {
		f, known := flavors[name]
		if !known {
			verdicts = append(verdicts, reason.Verdict{Flavor: name, Code: reason.NoMatchingFlavor, Detail: fmt.Sprintf("flavor %s not found", name)})
			continue
		}
		if why := refuses(f, ps, groupLabels(g, flavors)); why != "" {
			verdicts = append(verdicts, reason.Verdict{Flavor: name, Code: reason.NoMatchingFlavor, Detail: why})
			continue
		}
		if v := lacks(name, asked, room, taken); v != nil {
			verdicts = append(verdicts, *v)
			continue
		}
		return name, nil
	}
	return "", verdicts
}

// lacks says which resource the flavor has too little quota of, or nil. What could
// never fit is said before what does not fit now.
func lacks(name string, asked map[string]int64, room Room, taken map[quota.FlavorResource]int64) *reason.Verdict {
	var short *reason.Verdict
	for _, resource := range sortedKeys(asked) {
		fr := quota.FlavorResource{Flavor: name, Resource: resource}
		v := reason.Verdict{Flavor: name, Resource: resource, Earlier: taken[fr], Asked: asked[resource],
			Free: room.Available(fr), Capacity: room.Capacity(fr)}
		total := quota.Add(v.Earlier, v.Asked)
		switch {
		case total > v.Capacity:
			v.Code = reason.ExceedsMaxQuota
			return &v
		case total > v.Free && short == nil:
			v.Code = reason.WaitingForQuota
			short = &v
		}
	}
	return short
}

// nearest is the code of the verdict that is closest to a yes: waiting helps one
// flavor even if no other will ever do.
func nearest(verdicts []reason.Verdict) reason.Code {
	for _, code := range []reason.Code{reason.WaitingForQuota, reason.ExceedsMaxQuota} {
		if slices.ContainsFunc(verdicts, func(v reason.Verdict) bool { return v.Code == code }) {
			return code
		}
	}
	return reason.NoMatchingFlavor
}

func sortedKeys(m map[string]int64) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
