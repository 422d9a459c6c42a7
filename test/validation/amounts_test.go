package validation

import "strings"

// amountRules are about requests and limits that Muster cannot count, in every API with a pod template.
func amountRules() (out []rule) {
	for kind, template := range map[string]string{
		"Job": "spec>template>spec>", "JobSet": workers + "template>spec>template>spec>",
		"GenericJob": "spec>replicaSpecs>1>template>spec>",
		"VCJob":      "spec>tasks>1>template>spec>", "TrainingJob": "spec>replicaSpecs>template>spec>",
		"Workload": "spec>podSets>0>template>spec>",
	} {
		first := template + "containers>0>resources"
		requests := func(name, amount string) edits {
			return edits{first: map[string]any{"requests": map[string]any{name: amount}}}
		}
		out = append(out, rule{kind, "requests and limits fit 64 bits", inPodAmounts,
			"requests and limits are at most 9223372036854775807, and of cpu 9223372036854775, which these exceed: ",
			[]attempt{
				{what: "1e30 cpu", change: requests("cpu", "1e30")},
				{what: "just too many cpus", change: requests("cpu", "9223372036854776")},
				{what: "10E of memory", change: requests("memory", "10E")},
				{what: "more devices than there are",
					change: edits{first: map[string]any{"limits": map[string]any{"example.com/gpu": "9223372036854775808"},
						"requests": map[string]any{"example.com/gpu": "9223372036854775808"}}}},
				{what: "beside a tiny amount",
					change: edits{first: map[string]any{"requests": map[string]any{"cpu": "1e30", "memory": "1e-100"}}}},
				{what: "many digits and a negative exponent of three",
					change: requests("memory", "1"+strings.Repeat("0", 130)+"e-100")},
				{what: "in an init container",
					change: edits{template + "initContainers": "yaml:[{name: i, image: i, resources: {requests: {memory: '1e20'}}}]"}},
			},
			[]attempt{
				{what: "the most", change: requests("memory", "9223372036854775807")},
				{what: "the most of cpu", change: requests("cpu", "9223372036854775")},
				{what: "a thousandth", change: requests("cpu", "1m")},
				{what: "a tiny amount", change: requests("cpu", "1e-100")},
				{what: "petabytes", change: requests("memory", "3P")},
				{what: "exbibytes", change: requests("memory", "7Ei")},
			}})
	}
	limits := func(name, amount string) edits {
		return edits{"spec>tasks>main>workload>containers>c>resources>limits": map[string]any{name: amount}}
	}
	return append(out, rule{"LatticeJob", "requests and limits fit 64 bits", inLatticeRules,
		"requests and limits are at most 9223372036854775807, and of cpu 9223372036854775, which these exceed: ",
		[]attempt{{what: "1e30 cpu", change: limits("cpu", "1e30")}, {what: "10E of memory", change: limits("memory", "10E")},
			{what: "many digits and a negative exponent", change: limits("memory", "1"+strings.Repeat("0", 30)+"e-1")}},
		[]attempt{{what: "the most", change: limits("memory", "9223372036854775807")},
			{what: "the most of cpu", change: limits("cpu", "9P")}, {what: "a tiny amount", change: limits("cpu", "1e-100")}}})
}
