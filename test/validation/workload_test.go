package validation

import "strings"

const podSet = "spec>podSets>0>"

func workloadSchemaRules() []rule {
	of := "Workload"
	update :=
		edits{"status>admissionChecks": `yaml:[{name: a, state: Ready, lastTransitionTime: "2026-01-01T00:00:00Z", message: ""}]`}
	return []rule{
		{of, "it has a spec", inSchema, "spec: Required value",
			[]attempt{{what: "no spec", change: edits{"spec": nil}}},
			[]attempt{{what: "plain"}}},
		{of, "it has a pod set", inSchema, "should have at least 1 items",
			[]attempt{{what: "no pod sets", change: edits{"spec>podSets": []any{}}}},
			[]attempt{{what: "plain"}}},
		{of, "it has at most 64 pod sets", inSchema, "must have at most 64 items",
			[]attempt{{what: "65 pod sets",
				change: edits{"spec>podSets": times(65, "{name: s%d, count: 1, template: {spec: {containers: [{name: c}]}}}")}}},
			[]attempt{{what: "64 pod sets",
				change: edits{"spec>podSets": times(64, "{name: s%d, count: 1, template: {spec: {containers: [{name: c}]}}}")}}}},
		{of, "names of pod sets are unique", inSchema, "Duplicate value",
			[]attempt{{what: "two of one name",
				change: edits{"spec>podSets": times(2, "{name: s, count: 1, template: {spec: {containers: [{name: c}]}}}")}}},
			[]attempt{{what: "two of two names",
				change: edits{"spec>podSets": times(2, "{name: s%d, count: 1, template: {spec: {containers: [{name: c}]}}}")}}}},
		{of, "the name of a pod set is a DNS label", inSchema, "should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'",
			[]attempt{
				{what: "capitals", change: edits{podSet + "name": "Main"}},
				{what: "a dash at the end", change: edits{podSet + "name": "main-"}},
			},
			[]attempt{{what: "63 characters", change: edits{podSet + "name": strings.Repeat("a", 63)}}}},
		{of, "the name of a pod set has at most 63 characters", inSchema, "may not be more than 63",
			[]attempt{{what: "64 characters", change: edits{podSet + "name": strings.Repeat("a", 64)}}},
			[]attempt{{what: "63 characters", change: edits{podSet + "name": strings.Repeat("a", 63)}}}},
		{of, "count is not negative", inSchema, "should be greater than or equal to 0",
			[]attempt{{what: "-1", change: edits{podSet + "count": -1}}},
			[]attempt{{what: "0", change: edits{podSet + "count": 0}}}},
		{of, "minCount is at least 1", inSchema, "should be greater than or equal to 1",
			[]attempt{{what: "0", change: edits{podSet + "minCount": 0}}},
			[]attempt{{what: "1", change: edits{podSet + "minCount": 1}}}},
		{of, "a pod set's template has a spec with containers", inSchema, "Required value",
			[]attempt{
				{what: "no spec", change: edits{podSet + "template": map[string]any{}}},
				{what: "no containers", change: edits{podSet + "template>spec>containers": nil}},
			},
			[]attempt{{what: "plain"}}},
		{of, "a pod has at most 1,024 containers", inSchema, "must have at most 1024 items",
			[]attempt{{what: "1,025", change: edits{podSet + "template>spec>containers": times(1025, "{name: c%d}")}}},
			[]attempt{{what: "1,024", change: edits{podSet + "template>spec>containers": times(1024, "{name: c%d}")}}}},
		{of, "queueName and priorityClassName are DNS subdomains", inSchema,
			"should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]",
			[]attempt{
				{what: "a queue with capitals", change: edits{"spec>queueName": "Q"}},
				{what: "a class with an underscore", change: edits{"spec>priorityClassName": "a_b", "spec>priority": 1}},
			},
			[]attempt{{what: "with dots",
				change: edits{"spec>queueName": "a.b-c", "spec>priorityClassName": "a.b", "spec>priority": 1}}}},
		{of, "priorityClassSource names one of two kinds", inSchema, "Unsupported value",
			[]attempt{{what: "another", change: edits{"spec>priorityClassSource": "example.com/class"}}},
			[]attempt{
				{what: "a WorkloadPriorityClass",
					change: edits{"spec>priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass"}},
				{what: "a PriorityClass", change: edits{"spec>priorityClassSource": "scheduling.k8s.io/priorityclass"}},
			}},
		{of, "maximumExecutionTimeSeconds is at least 1", inSchema, "should be greater than or equal to 1",
			[]attempt{{what: "0", change: edits{"spec>maximumExecutionTimeSeconds": 0}}},
			[]attempt{{what: "1", change: edits{"spec>maximumExecutionTimeSeconds": 1}}}},
		{of, "it has at most 8 preemption gates", inSchema, "must have at most 8 items",
			[]attempt{{what: "9", change: edits{"spec>preemptionGates": times(9, "{name: g%d}")}}},
			[]attempt{{what: "8", change: edits{"spec>preemptionGates": times(8, "{name: g%d}")}}}},
		{of, "a pod set has at most 3 layers of slices", inSchema, "must have at most 3 items",
			[]attempt{{what: "4", change: edits{podSet + "topologyRequest>podsetSliceRequiredTopologyConstraints": times(4,
				"{topology: l%d, size: 2}")}}},
			[]attempt{{what: "3", change: edits{podSet + "topologyRequest>podsetSliceRequiredTopologyConstraints": times(3,
				"{topology: l%d, size: 2}")}}}},
		{of, "it has at most 8 admission checks", inSchema, "must have at most 8 items",
			[]attempt{{what: "9", before: edits{},
				change: edits{"status>admissionChecks": times(9,
					`{name: a%d, state: Ready, lastTransitionTime: "2026-01-01T00:00:00Z", message: ""}`)}}},
			[]attempt{{what: "8", before: edits{},
				change: edits{"status>admissionChecks": times(8,
					`{name: a%d, state: Ready, lastTransitionTime: "2026-01-01T00:00:00Z", message: ""}`)}}}},
		{of, "the state of a check is Pending, Ready, Retry or Rejected", inSchema, "Unsupported value",
			[]attempt{{what: "Done", before: edits{}, change: update.with(edits{"status>admissionChecks>0>state": "Done"})}},
			[]attempt{{what: "Retry", before: edits{}, change: update.with(edits{"status>admissionChecks>0>state": "Retry"})}}},
		{of, "it has at most 16 conditions", inSchema, "must have at most 16 items",
			[]attempt{{what: "17", before: edits{}, change: edits{"status>conditions": times(17, condition("T%d", "False"))}}},
			[]attempt{{what: "16", before: edits{}, change: edits{"status>conditions": times(16, condition("T%d", "False"))}}}},
		{of, "it has at most 8 unhealthy nodes and 20 nominated clusters", inSchema, "items",
			[]attempt{
				{what: "9 nodes", before: edits{}, change: edits{"status>unhealthyNodes": times(9, "{name: n%d}")}},
				{what: "21 clusters", before: edits{}, change: edits{"status>nominatedClusterNames": times(21, "c%d")}},
			},
			[]attempt{{what: "8 and 20", before: edits{}, change: edits{"status>unhealthyNodes": times(8, "{name: n%d}"),
				"status>nominatedClusterNames": times(20, "c%d")}}}},
	}
}

func condition(kind, status string) string {
	return `{type: ` + kind + `, status: "` + status +
		`", reason: R, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}`
}

func workloadRules() []rule {
	of := "Workload"
	const resources = podSet + "template>spec>containers>0>resources"
	minReplicas := map[string]any{"annotations": map[string]any{"muster.dev/min-replicas": "1"}}
	elastic := func(count, least int) edits {
		return edits{podSet + "count": count, podSet + "minCount": least, podSet + "template>metadata": minReplicas}
	}
	return []rule{
		{of, "minCount is at most count", inPodSets, "minCount should be positive and less or equal to count",
			[]attempt{{what: "5 of 4", change: edits{podSet + "minCount": 5}}},
			[]attempt{
				{what: "4 of 4", change: edits{podSet + "minCount": 4}},
				{what: "on several pod sets",
					change: edits{"spec>podSets": times(3,
						"{name: s%d, count: 4, minCount: 2, template: {spec: {containers: [{name: c}]}}}")}},
			}},
		{of, "an elastic pod set has at most 10,000 pods", inPodSets,
			"a pod set with minCount and the annotation muster.dev/min-replicas has a count of at most 10000",
			[]attempt{
				{what: "one more", change: elastic(10001, 1)},
				{what: "as many as there can be", change: elastic(2147483647, 1)},
				{what: "one more, later", before: elastic(10000, 1), change: edits{podSet + "count": 10001}},
			},
			[]attempt{
				{what: "10,000", change: elastic(10000, 1)},
				{what: "more, without a minimum",
					change: edits{podSet + "count": 10001, podSet + "template>metadata": minReplicas}},
				{what: "more, with partial admission only", change: edits{podSet + "count": 10001, podSet + "minCount": 1}},
			}},
		{of, "a priority class comes with its priority", inPodSets,
			"priority should not be nil when priorityClassName is set",
			[]attempt{{what: "no priority", change: edits{"spec>priorityClassName": "high"}}},
			[]attempt{{what: "both", change: edits{"spec>priorityClassName": "high", "spec>priority": 0}}}},
		{of, "a pod set requests one kind of placement", inCEL,
			"at most one of required, preferred and unconstrained can be set",
			[]attempt{
				{what: "required and preferred",
					change: edits{podSet + "topologyRequest": "yaml:{required: rack, preferred: rack}"}},
				{what: "preferred and unconstrained",
					change: edits{podSet + "topologyRequest": "yaml:{preferred: rack, unconstrained: true}"}},
			},
			[]attempt{
				{what: "required", change: edits{podSet + "topologyRequest": "yaml:{required: rack}"}},
				{what: "preferred, and explicitly not unconstrained",
					change: edits{podSet + "topologyRequest": "yaml:{preferred: rack, unconstrained: false}"}},
			}},
		{of, "a pod set is sliced in one way", inCEL,
			"podsetSliceRequiredTopologyConstraints cannot be set together with podSetSliceRequiredTopology or podSetSliceSize",
			[]attempt{{what: "both",
				change: edits{
					podSet + "topologyRequest": "yaml:{podSetSliceSize: 2, podsetSliceRequiredTopologyConstraints: [{topology: rack, size: 2}]}"}}},
			[]attempt{{what: "one",
				change: edits{podSet + "topologyRequest": "yaml:{podSetSliceSize: 2, podSetSliceRequiredTopology: rack}"}}}},
		{of, "the exponent of a quantity has at most three digits", inSchema, "[0-9]{1,3}",
			[]attempt{
				{what: "a request", change: edits{resources: `yaml:{requests: {cpu: "1e-2147483648"}}`}},
				{what: "overhead", change: edits{podSet + "template>spec>overhead": `yaml:{cpu: "0e2147483647"}`}},
			},
			[]attempt{{what: "three", change: edits{resources: `yaml:{requests: {cpu: "1e-100"}}`}}}},
		{of, "a quantity has at most 256 characters", inSchema, "Too long: may not be more than 256 bytes",
			[]attempt{
				{what: "many zeros", change: edits{resources: `yaml:{requests: {cpu: "` + strings.Repeat("0", 256) + `1"}}`}},
				{what: "a limit with many decimals",
					change: edits{resources: `yaml:{limits: {cpu: "1.` + strings.Repeat("0", 255) + `"}}`}},
			},
			[]attempt{{what: "256", change: edits{resources: `yaml:{requests: {cpu: "` + strings.Repeat("0", 255) + `1"}}`}}}},
		{of, "neither containers nor the pod request the resource pods", inPodSets,
			"the key is reserved for internal kueue use",
			[]attempt{
				{what: "a request", change: edits{resources: "yaml:{requests: {pods: 1}}"}},
				{what: "a limit", change: edits{resources: "yaml:{limits: {pods: 1}}"}},
				{what: "a request of an init container",
					change: edits{podSet + "template>spec>initContainers": "yaml:[{name: i, resources: {requests: {pods: 1}}}]"}},
				{what: "a request of the pod", change: edits{podSet + "template>spec>resources": "yaml:{requests: {pods: 1}}"}},
			},
			[]attempt{{what: "others",
				change: edits{resources: `yaml:{requests: {cpu: 1, nvidia.com/gpu: 8}, limits: {nvidia.com/gpu: "8"}}`}}}},
		{of, "amounts are not negative", inPodSets, "requests, limits and overhead must be greater than or equal to 0",
			[]attempt{
				{what: "a request", change: edits{resources: `yaml:{requests: {cpu: "-1"}}`}},
				{what: "a number", change: edits{resources: `yaml:{requests: {cpu: -1}}`}},
				{what: "a limit of an init container",
					change: edits{podSet + "template>spec>initContainers": `yaml:[{name: i, resources: {limits: {cpu: -100m}}}]`}},
				{what: "a request of the pod", change: edits{podSet + "template>spec>resources": `yaml:{requests: {cpu: "-1"}}`}},
				{what: "overhead", change: edits{podSet + "template>spec>overhead": `yaml:{cpu: "-1"}`}},
			},
			[]attempt{{what: "zero", change: edits{resources: `yaml:{requests: {cpu: 0, memory: "0"}}`}}}},
		{of, "pod sets have at most 4,096 labels and annotations together", inPodSets,
			"pod sets have at most 4096 labels and annotations together",
			[]attempt{{what: "4,097",
				change: edits{podSet + "template>metadata": map[string]any{"labels": manyLabels(4000),
					"annotations": manyLabels(97)}}}},
			[]attempt{{what: "4,096",
				change: edits{podSet + "template>metadata": map[string]any{"labels": manyLabels(4000),
					"annotations": manyLabels(96)}}}}},
		{of, "labels of a pod set are labels", inPodSets, "labels of a pod set must have qualified names as keys",
			[]attempt{
				{what: "a key with a space", change: edits{podSet + "template>metadata>labels": `yaml:{"a b": c}`}},
				{what: "a value with a space", change: edits{podSet + "template>metadata>labels": `yaml:{a: "b c"}`}},
			},
			[]attempt{{what: "a label", change: edits{podSet + "template>metadata>labels": `yaml:{example.com/role: a.B_c}`}}}},
		{of, "annotations of a pod set have qualified names", inPodSets,
			"annotations of a pod set must have qualified names as keys",
			[]attempt{{what: "a key with a space", change: edits{podSet + "template>metadata>annotations": `yaml:{"a b": c}`}}},
			[]attempt{{what: "any value",
				change: edits{podSet + "template>metadata>annotations": `yaml:{Example.com/note: "any text, of any length"}`}}}},
	}
}
