package validation

// reserved is a Workload of two pod sets that holds quota: main with 4 pods of at least 2, side with 2.
var reserved = edits{
	"spec>podSets>0>minCount": 2,
	"spec>podSets>1":          "yaml:{name: side, count: 2, template: {spec: {containers: [{name: c}]}}}",
	"status>conditions>0":     "yaml:" + condition("QuotaReserved", "True"),
	"status>admission": `yaml:{clusterQueue: cq, podSetAssignments: [
		{name: main, count: 4, flavors: {cpu: f}, resourceUsage: {cpu: "4"}},
		{name: side, count: 2, flavors: {cpu: f}, resourceUsage: {cpu: 500m}}]}`,
}

// admitted is the same, and may run.
var admitted = reserved.with(edits{"status>conditions>1": "yaml:" + condition("Admitted", "True")})

const assignment = "status>admission>podSetAssignments>0>"

// givenBack are the edits that take an admission back.
var givenBack = edits{
	"status>admission":  nil,
	"status>conditions": "yaml:[" + condition("QuotaReserved", "False") + "]",
}

func workloadReservedRules() []rule {
	of := "Workload"
	elastic := edits{"metadata>annotations": `yaml:{kueue.x-k8s.io/elastic-job: "true"}`}
	resized := edits{podSet + "template>metadata>annotations": `yaml:{muster.dev/min-replicas: "2"}`}
	const fixed = "field is immutable while quota is reserved"
	return []rule{
		{of, "podSets are fixed while quota is reserved", inReserved, fixed,
			[]attempt{
				{what: "another image", before: reserved, change: edits{podSet + "template>spec>containers>0>image": "j"}},
				{what: "another name", before: reserved, change: edits{podSet + "name": "other"}},
				{what: "another minCount", before: reserved, change: edits{podSet + "minCount": 1}},
				{what: "no minCount", before: reserved, change: edits{podSet + "minCount": nil}},
				{what: "a topologyRequest", before: reserved, change: edits{podSet + "topologyRequest": "yaml:{required: rack}"}},
				{what: "one less", before: reserved,
					change: edits{"spec>podSets": "yaml:[{name: side, count: 2, template: {spec: {containers: [{name: c}]}}}]"}},
			},
			[]attempt{
				{what: "nothing of them", before: reserved, change: edits{"spec>active": false}},
				{what: "without quota", before: edits{}, change: edits{podSet + "template>spec>containers>0>image": "j"}},
				{what: "labels of the Workload", before: reserved, change: edits{"metadata>labels": "yaml:{a: b}"}},
			}},
		{of, "count does not grow while quota is reserved", inReserved,
			"count cannot grow while quota is reserved: field is immutable",
			[]attempt{
				{what: "of an elastic job", before: reserved.with(elastic), change: edits{podSet + "count": 5}},
				{what: "of another pod set than the one that is resized", before: reserved.with(resized).with(elastic),
					change: edits{"spec>podSets>1>count": 3}},
				{what: "of a pod set that has given quota back",
					before: reserved.with(resized).with(edits{"status>reclaimablePods": "yaml:[{name: main, count: 1}]"}),
					change: edits{podSet + "count": 5}},
				{what: "where the admission says no count", before: reserved.with(resized).with(edits{assignment + "count": nil}),
					change: edits{podSet + "count": 5}},
			},
			[]attempt{
				{what: "without quota", before: edits{}, change: edits{podSet + "count": 5}},
				{what: "of a pod set that is resized", before: reserved.with(resized), change: edits{podSet + "count": 5}},
			}},
		{of, "count shrinks while quota is reserved only for elastic jobs", inPodSets,
			"count of a pod set is immutable while quota is reserved",
			[]attempt{
				{what: "of another job", before: reserved, change: edits{podSet + "count": 3}},
				{what: "of a pod set that is resized", before: reserved.with(resized), change: edits{podSet + "count": 3}},
			},
			[]attempt{{what: "of an elastic job", before: reserved.with(elastic), change: edits{podSet + "count": 3}}}},
		{of, "queueName is fixed while quota is reserved", inReserved, fixed,
			[]attempt{
				{what: "another", before: reserved, change: edits{"spec>queueName": "other"}},
				{what: "none", before: reserved, change: edits{"spec>queueName": nil}},
			},
			[]attempt{{what: "without quota", before: edits{}, change: edits{"spec>queueName": "other"}}}},
		{of, "priorityClassSource is fixed while quota is reserved", inReserved, fixed,
			[]attempt{{what: "another", before: reserved,
				change: edits{"spec>priorityClassSource": "scheduling.k8s.io/priorityclass"}}},
			[]attempt{{what: "without quota", before: edits{},
				change: edits{"spec>priorityClassSource": "scheduling.k8s.io/priorityclass"}}}},
		{of, "priorityClassName is fixed while quota is reserved, unless it names a WorkloadPriorityClass", inReserved, fixed,
			[]attempt{
				{what: "another PriorityClass",
					before: reserved.with(edits{"spec>priorityClassSource": "scheduling.k8s.io/priorityclass",
						"spec>priorityClassName": "a", "spec>priority": 1}), change: edits{"spec>priorityClassName": "b"}},
				{what: "one where there was none", before: reserved,
					change: edits{"spec>priorityClassName": "b", "spec>priority": 1}},
			},
			[]attempt{{what: "another WorkloadPriorityClass",
				before: reserved.with(edits{"spec>priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass",
					"spec>priorityClassName": "a", "spec>priority": 1}),
				change: edits{"spec>priorityClassName": "b", "spec>priority": 2}}}},
		{of, "maximumExecutionTimeSeconds is fixed while admitted", inReserved,
			"maximumExecutionTimeSeconds is immutable while admitted",
			[]attempt{{what: "a limit where there was none", before: admitted,
				change: edits{"spec>maximumExecutionTimeSeconds": 10}}},
			[]attempt{{what: "while quota is reserved only", before: reserved,
				change: edits{"spec>maximumExecutionTimeSeconds": 10}}}},
		{of, "QuotaReserved is True only with an admission", inAdmission,
			"must be set while the QuotaReserved condition is true",
			[]attempt{
				{what: "no admission", before: edits{},
					change: edits{"status>conditions>0": "yaml:" + condition("QuotaReserved", "True")}},
				{what: "the admission taken back alone", before: reserved, change: edits{"status>admission": nil}},
			},
			[]attempt{{what: "both taken back", before: reserved, change: givenBack}}},
		{of, "an admission assigns every pod set", inAdmission,
			"podSetAssignments must have the same number of podSets as the spec",
			[]attempt{{what: "one of none", before: edits{}, change: edits{
				"status>conditions>0": "yaml:" + condition("QuotaReserved", "True"),
				"status>admission":    "yaml:{clusterQueue: cq, podSetAssignments: []}"}}},
			[]attempt{{what: "one of one", before: edits{}, change: edits{
				"status>conditions>0": "yaml:" + condition("QuotaReserved", "True"),
				"status>admission":    "yaml:{clusterQueue: cq, podSetAssignments: [{name: main}]}"}}}},
		{of, "assignments name pod sets", inAdmission, "podSetAssignments must name pod sets of the spec",
			[]attempt{{what: "another name", before: edits{},
				change: edits{"status>admission": "yaml:{clusterQueue: cq, podSetAssignments: [{name: other}]}"}}},
			[]attempt{{what: "their names", before: edits{},
				change: edits{"status>admission": "yaml:{clusterQueue: cq, podSetAssignments: [{name: main}]}"}}}},
		{of, "assigned counts are between minCount and count", inAdmission,
			"count of an assignment must be between minCount and count of the pod set",
			[]attempt{
				{what: "more than count", before: admitted,
					change: edits{assignment + "count": 5, assignment + "resourceUsage>cpu": "5"}, user: operator},
				{what: "less than minCount", before: admitted,
					change: edits{assignment + "count": 1, assignment + "resourceUsage>cpu": "1"}, user: operator},
				{what: "less than count where there is no minCount", before: admitted,
					change: edits{"status>admission>podSetAssignments>1>count": 1,
						"status>admission>podSetAssignments>1>resourceUsage>cpu": "250m"}, user: operator},
				{what: "none where pods are needed",
					before: edits{"spec>podSets>0>minCount": 2, "status>reclaimablePods": "yaml:[{name: main, count: 3}]"},
					change: edits{"status>admission": "yaml:{clusterQueue: cq, podSetAssignments: [{name: main, count: 0}]}"}},
				{what: "fewer of one pod set, where another may start without pods",
					before: edits{"spec>podSets>1": "yaml:{name: side, count: 2, template: {metadata: {annotations: {muster.dev/min-pods: \"1\"}}, spec: {containers: [{name: c}]}}}"},
					change: edits{
						"status>admission": "yaml:{clusterQueue: cq, podSetAssignments: [{name: main, count: 3}, {name: side, count: 0}]}"}},
				{what: "part of a pod set without minCount at first", before: edits{},
					change: edits{"status>admission": "yaml:{clusterQueue: cq, podSetAssignments: [{name: main, count: 3}]}"}},
			},
			[]attempt{
				{what: "none of a pod set that may start without pods",
					before: edits{"spec>podSets>1": "yaml:{name: side, count: 2, template: {metadata: {annotations: {muster.dev/min-pods: \"1\"}}, spec: {containers: [{name: c}]}}}"},
					change: edits{
						"status>admission": "yaml:{clusterQueue: cq, podSetAssignments: [{name: main, count: 4}, {name: side, count: 0}]}"}},
				{what: "minCount", before: admitted,
					change: edits{assignment + "count": 2, assignment + "resourceUsage>cpu": "2"}, user: operator},
				{what: "part of a pod set with minCount at first", before: edits{"spec>podSets>0>minCount": 3},
					change: edits{"status>admission": "yaml:{clusterQueue: cq, podSetAssignments: [{name: main, count: 3}]}"}},
				{what: "one where the fewest have ended",
					before: edits{"spec>podSets>0>minCount": 2, "status>reclaimablePods": "yaml:[{name: main, count: 2}]"},
					change: edits{"status>admission": "yaml:{clusterQueue: cq, podSetAssignments: [{name: main, count: 1}]}"}},
				{what: "none where all have ended", before: edits{"status>reclaimablePods": "yaml:[{name: main, count: 4}]"},
					change: edits{"status>admission": "yaml:{clusterQueue: cq, podSetAssignments: [{name: main, count: 0}]}"}},
				{what: "all but the pods that have ended", before: edits{"status>reclaimablePods": "yaml:[{name: main, count: 1}]"},
					change: edits{"status>admission": "yaml:{clusterQueue: cq, podSetAssignments: [{name: main, count: 3}]}"}},
			}},
		{of, "clusterQueue, names and flavors of an admission are fixed", inAdmission, "field is immutable",
			[]attempt{
				{what: "another ClusterQueue", before: admitted,
					change: edits{"status>admission>clusterQueue": "other"}, user: operator},
				{what: "another flavor", before: admitted, change: edits{assignment + "flavors>cpu": "other"}, user: operator},
				{what: "no flavors", before: admitted, change: edits{assignment + "flavors": nil}, user: operator},
				{what: "flavors where there were none",
					before: edits{"status>admission": "yaml:{clusterQueue: cq, podSetAssignments: [{name: main}]}"},
					change: edits{assignment + "flavors": "yaml:{cpu: f}"}, user: operator},
				{what: "one less", before: edits{"status>admission": "yaml:{clusterQueue: cq, podSetAssignments: [{name: main}]}"},
					change: edits{"status>admission>podSetAssignments": "yaml:[]"}, user: operator},
			},
			[]attempt{{what: "taken back", before: admitted, change: givenBack}}},
		{of, "only the operator changes an admission", inAdmission,
			"only system:serviceaccount:muster-system:muster-operator may change the admission of a Workload",
			[]attempt{
				{what: "an administrator resizes", before: admitted,
					change: edits{assignment + "count": 3, assignment + "resourceUsage>cpu": "3"}},
				{what: "another service account places", before: admitted,
					change: edits{assignment + "topologyAssignment": "yaml:{levels: [rack], domains: [{values: [a], count: 4}]}"},
					user:   "system:serviceaccount:default:other"},
			},
			[]attempt{
				{what: "the operator resizes", before: admitted,
					change: edits{assignment + "count": 3, assignment + "resourceUsage>cpu": "3"}, user: operator},
				{what: "the operator places", before: admitted,
					change: edits{assignment + "topologyAssignment": "yaml:{levels: [rack], domains: [{values: [a], count: 4}]}"},
					user:   operator},
				{what: "somebody admits what was not", before: edits{},
					change: edits{"status>admission": "yaml:{clusterQueue: cq, podSetAssignments: [{name: main}]}"}},
				{what: "somebody takes it back", before: admitted, change: givenBack},
				{what: "somebody writes another part of the status", before: admitted,
					change: edits{"status>conditions>2": "yaml:" + condition("PodsReady", "True")}},
			}},
		{of, "usage is a multiple of the assigned count, where others than the operator admit", inAdmission,
			"is not a multiple of its count 4",
			[]attempt{
				{what: "5 GPUs for 4 pods", before: edits{},
					change: edits{
						"status>admission": `yaml:{clusterQueue: cq, podSetAssignments: [{name: main, count: 4, resourceUsage: {nvidia.com/gpu: "5"}}]}`}},
				{what: "200Ti and a byte for 4 pods", before: edits{},
					change: edits{
						"status>admission": `yaml:{clusterQueue: cq, podSetAssignments: [{name: main, count: 4, resourceUsage: {memory: "219902325555201"}}]}`}},
				{what: "more than is counted", before: edits{},
					change: edits{
						"status>admission": `yaml:{clusterQueue: cq, podSetAssignments: [{name: main, count: 4, resourceUsage: {memory: "1e19"}}]}`}},
				{what: "10m for 4 pods", before: edits{},
					change: edits{
						"status>admission": `yaml:{clusterQueue: cq, podSetAssignments: [{name: main, count: 4, resourceUsage: {cpu: 10m}}]}`}},
			},
			[]attempt{
				{what: "0.5 for 4 pods", before: edits{},
					change: edits{
						"status>admission": `yaml:{clusterQueue: cq, podSetAssignments: [{name: main, count: 4, resourceUsage: {cpu: "0.5", memory: 4Gi, nvidia.com/gpu: 8}}]}`}},
				{what: "2 CPUs for 4 pods: 500m each", before: edits{},
					change: edits{
						"status>admission": `yaml:{clusterQueue: cq, podSetAssignments: [{name: main, count: 4, resourceUsage: {cpu: "2"}}]}`}},
				{what: "200Ti for 4 pods", before: edits{},
					change: edits{
						"status>admission": `yaml:{clusterQueue: cq, podSetAssignments: [{name: main, count: 4, resourceUsage: {memory: 200Ti}}]}`}},
				{what: "as much as the operator computes", before: edits{},
					change: edits{
						"status>admission": `yaml:{clusterQueue: cq, podSetAssignments: [{name: main, count: 4, resourceUsage: {memory: "9223372036854775807"}}]}`},
					user: operator},
				{what: "for no pods", before: edits{podSet + "count": 0},
					change: edits{
						"status>admission": `yaml:{clusterQueue: cq, podSetAssignments: [{name: main, count: 0, resourceUsage: {cpu: "0"}}]}`}},
			}},
	}
}

func workloadStatusRules() []rule {
	of := "Workload"
	reclaimed := reserved.with(edits{"status>reclaimablePods": "yaml:[{name: main, count: 2}]"})
	elastic := reclaimed.with(edits{"metadata>annotations": `yaml:{kueue.x-k8s.io/elastic-job: "true"}`})
	check := edits{"status>admissionChecks": `yaml:[{name: a, state: Ready, lastTransitionTime: "2026-01-01T00:00:00Z", message: "",
		podSetUpdates: [{name: main, nodeSelector: {a: b}}]}]`}
	sent := edits{"status>clusterName": "a", "status>nominatedClusterNames": nil}
	const updates = "status>admissionChecks>0>podSetUpdates"
	tolerations := func(value string) edits {
		return check.with(edits{updates + ">0>tolerations": "yaml:" + value})
	}
	return []rule{
		{of, "reclaimablePods name pod sets", inReports, "reclaimablePods must name pod sets of the spec",
			[]attempt{{what: "another name", before: edits{},
				change: edits{"status>reclaimablePods": "yaml:[{name: other, count: 1}]"}}},
			[]attempt{{what: "theirs", before: edits{},
				change: edits{"status>reclaimablePods": "yaml:[{name: main, count: 1}]"}}}},
		{of, "no more pods are reclaimable than there are", inReports,
			"count should be less or equal to the count of the pod set",
			[]attempt{{what: "5 of 4", before: edits{},
				change: edits{"status>reclaimablePods": "yaml:[{name: main, count: 5}]"}}},
			[]attempt{
				{what: "4 of 4", before: edits{}, change: edits{"status>reclaimablePods": "yaml:[{name: main, count: 4}]"}},
				{what: "an elastic job shrinks below what it has given back", before: elastic,
					change: edits{podSet + "minCount": 2, podSet + "count": 2}},
			}},
		{of, "reclaimablePods stay while quota is reserved", inReclaimable,
			"reclaimablePods of main cannot be removed while quota is reserved",
			[]attempt{{what: "removed", before: reclaimed, change: edits{"status>reclaimablePods": nil}}},
			[]attempt{
				{what: "another beside it", before: reclaimed,
					change: edits{"status>reclaimablePods>1": "yaml:{name: side, count: 1}"}},
				{what: "removed with the quota", before: reclaimed, change: givenBack.with(edits{"status>reclaimablePods": nil})},
				{what: "removed of an elastic job", before: elastic, change: edits{"status>reclaimablePods": nil}},
			}},
		{of, "reclaimablePods do not shrink while quota is reserved", inReclaimable,
			"reclaimablePods of main cannot be less than 2 while quota is reserved",
			[]attempt{{what: "fewer", before: reclaimed, change: edits{"status>reclaimablePods>0>count": 1}}},
			[]attempt{
				{what: "more", before: reclaimed, change: edits{"status>reclaimablePods>0>count": 3}},
				{what: "fewer of an elastic job", before: elastic, change: edits{"status>reclaimablePods>0>count": 1}},
			}},
		{of, "podSetUpdates name pod sets", inReports, "podSetUpdates must name pod sets of the spec",
			[]attempt{{what: "another name", before: edits{}, change: check.with(edits{updates + ">0>name": "other"})}},
			[]attempt{{what: "theirs", before: edits{}, change: check}}},
		{of, "podSetUpdates of a ready check are fixed", inCEL, "field is immutable",
			[]attempt{
				{what: "another", before: check, change: edits{updates + ">0>nodeSelector>a": "c"}},
				{what: "none", before: check, change: edits{updates: nil}},
			},
			[]attempt{{what: "with a change of state", before: check,
				change: edits{"status>admissionChecks>0>state": "Pending", updates: nil}}}},
		{of, "a toleration of podSetUpdates without a key tolerates everything", inCEL,
			"operator must be Exists when 'key' is empty",
			[]attempt{{what: "no key", before: edits{}, change: tolerations("[{operator: Equal, value: v}]")}},
			[]attempt{{what: "Exists", before: edits{}, change: tolerations("[{operator: Exists}]")}}},
		{of, "tolerationSeconds in podSetUpdates are for NoExecute", inCEL,
			"effect must be 'NoExecute' when 'tolerationSeconds' is set",
			[]attempt{{what: "NoSchedule", before: edits{},
				change: tolerations("[{key: k, effect: NoSchedule, tolerationSeconds: 1}]")}},
			[]attempt{{what: "NoExecute", before: edits{},
				change: tolerations("[{key: k, effect: NoExecute, tolerationSeconds: 1}]")}}},
		{of, "the operator of a toleration of podSetUpdates is Equal or Exists", inCEL,
			"supported toleration values: 'Equal'(default), 'Exists'",
			[]attempt{{what: "In", before: edits{}, change: tolerations("[{key: k, operator: In}]")}},
			[]attempt{{what: "none", before: edits{}, change: tolerations("[{key: k, value: v}]")}}},
		{of, "a toleration of podSetUpdates with the operator Exists has no value", inCEL,
			"a value must be empty when 'operator' is 'Exists'",
			[]attempt{{what: "a value", before: edits{}, change: tolerations("[{key: k, operator: Exists, value: v}]")}},
			[]attempt{{what: "none", before: edits{}, change: tolerations("[{key: k, operator: Exists}]")}}},
		{of, "the effect of a toleration of podSetUpdates is that of a taint", inCEL,
			"supported taint effect values: 'NoSchedule', 'PreferNoSchedule', 'NoExecute'",
			[]attempt{{what: "another", before: edits{}, change: tolerations("[{key: k, effect: Never}]")}},
			[]attempt{{what: "PreferNoSchedule", before: edits{}, change: tolerations("[{key: k, effect: PreferNoSchedule}]")}}},
		{of, "clusterName is one of the nominated clusters", inReports,
			"clusterName must be one of the nominatedClusterNames",
			[]attempt{{what: "another", before: edits{"status>nominatedClusterNames": "yaml:[a, b]"},
				change: edits{"status>clusterName": "c", "status>nominatedClusterNames": nil}}},
			[]attempt{{what: "one of them", before: edits{"status>nominatedClusterNames": "yaml:[a, b]"},
				change: edits{"status>clusterName": "b", "status>nominatedClusterNames": nil}}}},
		{of, "clusterName is fixed until the Workload is evicted", inReports, "clusterName is immutable once set",
			[]attempt{
				{what: "another", before: edits{"status>nominatedClusterNames": "yaml:[a]"}, next: sent,
					change: edits{"status>clusterName": "b"}},
				{what: "none", before: edits{"status>nominatedClusterNames": "yaml:[a]"}, next: sent,
					change: edits{"status>clusterName": nil}},
			},
			[]attempt{{what: "none, evicted", before: edits{"status>nominatedClusterNames": "yaml:[a]"}, next: sent,
				change: edits{"status>clusterName": nil, "status>conditions": "yaml:[" + condition("Evicted", "True") + "]"}}}},
		{of, "clusterName and nominatedClusterNames are not both set", inReports,
			"clusterName and nominatedClusterNames are mutually exclusive",
			[]attempt{{what: "both", before: edits{"status>nominatedClusterNames": "yaml:[a, b]"},
				change: edits{"status>clusterName": "b"}}},
			[]attempt{{what: "one", before: edits{"status>nominatedClusterNames": "yaml:[a, b]"},
				change: edits{"status>clusterName": "b", "status>nominatedClusterNames": nil}}}},
	}
}
