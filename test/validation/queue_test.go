package validation

import (
	"fmt"
	"slices"
	"strings"
)

const (
	group = "spec>resourceGroups>0>"
	quota = group + "flavors>0>resources>0>"
)

func queueRules() []rule {
	return slices.Concat(quotaRules("ClusterQueue", "cohort", "cohort"), quotaRules("Cohort", "parentName", "parent"),
		clusterQueueRules(), localQueueRules())
}

// covering are resource groups with a quota of one resource.
func covering(resource string) string {
	return fmt.Sprintf("[{coveredResources: [%[1]q], flavors: [{name: f, resources: [{name: %[1]q, nominalQuota: 1}]}]}]", resource)
}

// quotaRules are those of the resource groups of a ClusterQueue or a Cohort; parent is the field that names the cohort
// above, word what the refusal calls it.
func quotaRules(of, parent, word string) []rule {
	groups := func(value string) edits { return edits{"spec>resourceGroups": "yaml:" + value} }
	above := edits{"spec>" + parent: "above"}
	const flavor = "{name: f%d, resources: [{name: cpu, nominalQuota: 1}]}"
	const oneGroup = "{coveredResources: [r%d], flavors: [{name: f%d, resources: [{name: r%d, nominalQuota: 1}]}]}"
	return []rule{
		{of, "it has at most 16 resource groups", inSchema, "must have at most 16 items",
			[]attempt{{what: "17", change: edits{"spec>resourceGroups": times(17, oneGroup)}}},
			[]attempt{{what: "16", change: edits{"spec>resourceGroups": times(16, oneGroup)}}}},
		{of, "a resource group has 1 to 64 resources and 1 to 64 flavors", inSchema, "items",
			[]attempt{
				{what: "no resources", change: edits{group + "coveredResources": "yaml:[]"}},
				{what: "no flavors", change: edits{group + "flavors": "yaml:[]"}},
				{what: "65 flavors", change: groups("[{coveredResources: [cpu], flavors: []}]").
					with(edits{group + "flavors": times(65, flavor)})},
			},
			[]attempt{{what: "64 flavors",
				change: groups("[{coveredResources: [cpu], flavors: []}]").with(edits{group + "flavors": times(64, flavor)})}}},
		{of, "a flavor is listed once in a group", inSchema, "Duplicate value",
			[]attempt{{what: "twice",
				change: groups("[{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: 1}]}, {name: f, resources: [{name: cpu, nominalQuota: 1}]}]}]")}},
			[]attempt{{what: "plain"}}},
		{of, "names of flavors and of the cohort above are DNS subdomains", inSchema,
			"should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]",
			[]attempt{
				{what: "a flavor with capitals", change: edits{group + "flavors>0>name": "F"}},
				{what: "a cohort with an underscore", change: edits{"spec>" + parent: "a_b"}},
			},
			[]attempt{{what: "names", change: edits{group + "flavors>0>name": "f.a-b", "spec>" + parent: "a.b"}}}},
		{of, "the exponent of a quantity has at most three digits", inSchema, "[0-9]{1,3}",
			[]attempt{
				{what: "a quota of nothing", change: edits{quota + "nominalQuota": "1e-2147483648"}},
				{what: "a quota of all there is", change: edits{quota + "nominalQuota": "1E2147483647"}},
				{what: "a lending limit of nothing", change: above.with(edits{quota + "lendingLimit": "0e2147483647"})},
				{what: "a weight", change: edits{"spec>fairSharing>weight": "1e-1000"}},
			},
			[]attempt{{what: "three, of a weight", change: edits{"spec>fairSharing>weight": "1e100"}},
				{what: "the sign is none", change: edits{quota + "nominalQuota": "1e-003"}}}},
		{of, "a quantity has at most 256 characters", inSchema, "Too long: may not be more than 256 bytes",
			[]attempt{
				{what: "a quota of many digits", change: edits{quota + "nominalQuota": strings.Repeat("0", 256) + "1"}},
				{what: "a weight of many decimals", change: edits{"spec>fairSharing>weight": "1." + strings.Repeat("0", 255)}},
			},
			[]attempt{{what: "256, of a quota", change: edits{quota + "nominalQuota": strings.Repeat("0", 255) + "1"}}}},
		{of, "a flavor has a quota of each resource of its group", inQueueResources,
			"flavors must have the same number of resources as the coveredResources",
			[]attempt{{what: "one less", change: edits{group + "coveredResources": "yaml:[cpu, memory, pods]"}}},
			[]attempt{{what: "plain"}}},
		{of, "a flavor lists resources in the order of its group", inQueueResources,
			"resources of a flavor must be the coveredResources, in the same order",
			[]attempt{
				{what: "another order",
					change: groups("[{coveredResources: [cpu, memory], flavors: [{name: f, resources: [{name: memory, nominalQuota: 1}, {name: cpu, nominalQuota: 1}]}]}]")},
				{what: "another resource",
					change: groups("[{coveredResources: [cpu, memory], flavors: [{name: f, resources: [{name: cpu, nominalQuota: 1}, {name: pods, nominalQuota: 1}]}]}]")},
			},
			[]attempt{{what: "the same",
				change: groups("[{coveredResources: [cpu, memory], flavors: [{name: f, resources: [{name: cpu, nominalQuota: 1}, {name: memory, nominalQuota: 1}]}]}]")}}},
		{of, "a resource group has at most 512 pairs of flavor and resource", inCEL,
			"a resource group can have at most 512 pairs of flavor and resource",
			[]attempt{{what: "64 times 9",
				change: edits{group + "coveredResources": times(9, "r%d"), group + "flavors": flavorsOf(64, 9)}}},
			[]attempt{{what: "64 times 8",
				change: edits{group + "coveredResources": times(8, "r%d"), group + "flavors": flavorsOf(64, 8)}}}},
		{of, "a resource is in one group", inQueueResources, "a resource can be in one resource group only",
			[]attempt{{what: "two",
				change: groups("[{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: 1}]}]}, {coveredResources: [cpu], flavors: [{name: g, resources: [{name: cpu, nominalQuota: 1}]}]}]")}},
			[]attempt{{what: "one each",
				change: groups("[{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: 1}]}]}, {coveredResources: [pods], flavors: [{name: g, resources: [{name: pods, nominalQuota: 1}]}]}]")}}},
		{of, "a flavor is in one group", inQueueResources, "a flavor can be in one resource group only",
			[]attempt{{what: "two",
				change: groups("[{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: 1}]}]}, {coveredResources: [pods], flavors: [{name: f, resources: [{name: pods, nominalQuota: 1}]}]}]")}},
			[]attempt{{what: "one each",
				change: groups("[{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: 1}]}]}, {coveredResources: [pods], flavors: [{name: g, resources: [{name: pods, nominalQuota: 1}]}]}]")}}},
		{of, "it has at most 256 flavors", inCEL, "at most 256 flavors",
			[]attempt{{what: "5 groups of 52", change: edits{"spec>resourceGroups": groupsOf(5, 52, 1)}}},
			[]attempt{{what: "4 groups of 64", change: edits{"spec>resourceGroups": groupsOf(4, 64, 1)}}}},
		{of, "it has at most 256 resources", inCEL, "at most 256 resources",
			[]attempt{{what: "5 groups of 52", change: edits{"spec>resourceGroups": groupsOf(5, 1, 52)}}},
			[]attempt{{what: "4 groups of 64", change: edits{"spec>resourceGroups": groupsOf(4, 1, 64)}}}},
		{of, "names of resources are qualified names", inQueueResources,
			"names of resources must be qualified names, such as cpu or nvidia.com/gpu, which these are not: ",
			[]attempt{
				{what: "a space", change: groups(covering("my gpu"))},
				{what: "two slashes", change: groups(covering("a/b/c"))},
				{what: "64 characters", change: groups(covering(strings.Repeat("a", 64)))},
				{what: "a control character", change: groups(covering("a\x1b[2J"))},
				{what: "later", before: edits{}, change: groups(covering("my gpu"))},
			},
			[]attempt{{what: "a device", change: groups(covering("nvidia.com/mig-1g.5gb"))},
				{what: "63 characters", change: groups(covering(strings.Repeat("a", 63)))}}},
		{of, "quotas and limits fit 64 bits", inQueueResources,
			"quotas and limits are at most 9223372036854775807, which these exceed: cpu: ",
			[]attempt{
				{what: "1e30", change: edits{quota + "nominalQuota": "1e30"}},
				{what: "10E, later", before: edits{}, change: edits{quota + "nominalQuota": "10E"}},
				{what: "a borrowing limit", change: above.with(edits{quota + "borrowingLimit": "1e100"})},
			},
			[]attempt{
				{what: "1E, as many write for no limit", change: edits{quota + "nominalQuota": "1E"}},
				{what: "the most of all",
					change: groups("[{coveredResources: [memory], flavors: [{name: f, resources: [{name: memory, nominalQuota: '9223372036854775807'}]}]}]")},
				{what: "almost nothing", change: edits{quota + "nominalQuota": "1e-100"}},
			}},
		{of, "quotas and limits are not negative", inQueueResources, "quotas and limits must be greater than or equal to 0",
			[]attempt{
				{what: "a quota", change: edits{quota + "nominalQuota": "-1"}},
				{what: "a quota that is a number", change: edits{quota + "nominalQuota": -1}},
				{what: "a borrowing limit", change: above.with(edits{quota + "borrowingLimit": "-1m"})},
				{what: "a lending limit", change: above.with(edits{quota + "lendingLimit": -2})},
			},
			[]attempt{{what: "zeros",
				change: above.with(edits{quota + "nominalQuota": 0, quota + "borrowingLimit": "0", quota + "lendingLimit": 0})}}},
		{of, "borrowingLimit needs a cohort above", inQueueResources, "borrowingLimit must be nil when " + word + " is empty",
			[]attempt{{what: "none", change: edits{quota + "borrowingLimit": 1}}},
			[]attempt{{what: "one", change: above.with(edits{quota + "borrowingLimit": 1})}}},
		{of, "lendingLimit needs a cohort above", inQueueResources, "lendingLimit must be nil when " + word + " is empty",
			[]attempt{{what: "none", change: edits{quota + "lendingLimit": 1}}},
			[]attempt{{what: "one", change: above.with(edits{quota + "lendingLimit": 1})}}},
		{of, "the weight of fair sharing is not negative", inCEL, "must be greater than or equal to 0",
			[]attempt{{what: "-1", change: edits{"spec>fairSharing>weight": "-1"}}},
			[]attempt{{what: "0", change: edits{"spec>fairSharing>weight": 0}}}},
		{of, "the weight of fair sharing is 0 or more than 10^-9", inCEL, "must be 0 or greater than 10^-9",
			[]attempt{{what: "10^-9", change: edits{"spec>fairSharing>weight": "1n"}}},
			[]attempt{{what: "2*10^-9", change: edits{"spec>fairSharing>weight": "2n"}},
				{what: "1.5", change: edits{"spec>fairSharing>weight": "1.5"}}}},
	}
}

func clusterQueueRules() []rule {
	of := "ClusterQueue"
	return []rule{
		{of, "the annotation closed is true or false", inAnnotations,
			"the annotation muster.dev/closed must be true or false",
			[]attempt{{what: "yes", change: edits{"metadata>annotations": map[string]any{"muster.dev/closed": "yes"}}}},
			[]attempt{{what: "true", change: edits{"metadata>annotations": map[string]any{"muster.dev/closed": "true"}}}}},
		{of, "the annotation preemptible is true or false", inAnnotations,
			"the annotation muster.dev/preemptible must be true or false",
			[]attempt{{what: "yes", change: edits{"metadata>annotations": map[string]any{"muster.dev/preemptible": "yes"}}}},
			[]attempt{{what: "false",
				change: edits{"metadata>annotations": map[string]any{"muster.dev/preemptible": "false"}}}}},
		{of, "the annotation queue-priority is a number from 0 to 100", inAnnotations,
			"the annotation muster.dev/queue-priority must be a number from 0 to 100",
			[]attempt{
				{what: "101", change: edits{"metadata>annotations": map[string]any{"muster.dev/queue-priority": "101"}}},
				{what: "-1", change: edits{"metadata>annotations": map[string]any{"muster.dev/queue-priority": "-1"}}},
			},
			[]attempt{{what: "100", change: edits{"metadata>annotations": map[string]any{"muster.dev/queue-priority": "100"}}}}},
		{of, "the annotation backfill is true or false", inAnnotations, "the annotation muster.dev/backfill must be true or false",
			[]attempt{{what: "a strategy",
				change: edits{"metadata>annotations": map[string]any{"muster.dev/backfill": "BestEffortFIFO"}}}},
			[]attempt{{what: "true", change: edits{"metadata>annotations": map[string]any{"muster.dev/backfill": "true"}}}}},
		{of, "lendingLimit is at most nominalQuota", inQuota,
			"lendingLimit of cpu must be less than or equal to the nominalQuota",
			[]attempt{{what: "more", change: edits{"spec>cohort": "above", quota + "nominalQuota": 1,
				quota + "lendingLimit": "1001m"}}},
			[]attempt{{what: "the same",
				change: edits{"spec>cohort": "above", quota + "nominalQuota": 1, quota + "lendingLimit": "1000m"}}}},
		{of, "queueingStrategy is StrictFIFO or BestEffortFIFO", inSchema, "Unsupported value",
			[]attempt{{what: "another", change: edits{"spec>queueingStrategy": "LIFO"}}},
			[]attempt{{what: "StrictFIFO", change: edits{"spec>queueingStrategy": "StrictFIFO"}}}},
		{of, "stopPolicy is None, Hold or HoldAndDrain", inSchema, "Unsupported value",
			[]attempt{{what: "another", change: edits{"spec>stopPolicy": "Stop"}}},
			[]attempt{{what: "HoldAndDrain", change: edits{"spec>stopPolicy": "HoldAndDrain"}}}},
		{of, "policies of preemption, fungibility and scope have values of the API", inSchema, "Unsupported value",
			[]attempt{
				{what: "reclaimWithinCohort", change: edits{"spec>preemption>reclaimWithinCohort": "LowerOrNewerEqualPriority"}},
				{what: "withinClusterQueue", change: edits{"spec>preemption>withinClusterQueue": "Any"}},
				{what: "borrowWithinCohort", change: edits{"spec>preemption>borrowWithinCohort>policy": "Any"}},
				{what: "whenCanBorrow", change: edits{"spec>flavorFungibility>whenCanBorrow": "Preempt"}},
				{what: "whenCanPreempt", change: edits{"spec>flavorFungibility>whenCanPreempt": "Borrow"}},
				{what: "preference", change: edits{"spec>flavorFungibility>preference": "Neither"}},
				{what: "admissionMode", change: edits{"spec>admissionScope>admissionMode": "Some"}},
			},
			[]attempt{{what: "theirs", change: edits{
				"spec>preemption":        "yaml:{reclaimWithinCohort: Any, withinClusterQueue: LowerOrNewerEqualPriority, borrowWithinCohort: {policy: LowerPriority, maxPriorityThreshold: 5}}",
				"spec>flavorFungibility": "yaml:{whenCanBorrow: TryNextFlavor, whenCanPreempt: Preempt, preference: BorrowingOverPreemption}",
				"spec>admissionScope":    "yaml:{admissionMode: UsageBasedAdmissionFairSharing}"}}}},
		{of, "borrowWithinCohort needs reclaimWithinCohort", inCEL,
			"reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never",
			[]attempt{{what: "by default", change: edits{"spec>preemption>borrowWithinCohort>policy": "LowerPriority"}}},
			[]attempt{{what: "what reclaims",
				change: edits{
					"spec>preemption": "yaml:{reclaimWithinCohort: LowerPriority, borrowWithinCohort: {policy: LowerPriority}}"}}}},
		{of, "preemption is preferred to borrowing only where the next flavor is tried for both", inCEL,
			"preference PreemptionOverBorrowing needs whenCanBorrow and whenCanPreempt to be TryNextFlavor",
			[]attempt{{what: "by default", change: edits{"spec>flavorFungibility>preference": "PreemptionOverBorrowing"}}},
			[]attempt{{what: "both",
				change: edits{
					"spec>flavorFungibility": "yaml:{preference: PreemptionOverBorrowing, whenCanBorrow: TryNextFlavor, whenCanPreempt: TryNextFlavor}"}}}},
		{of, "admissionChecks and admissionChecksStrategy are not both set", inCEL,
			"Either AdmissionChecks or AdmissionCheckStrategy can be set, but not both",
			[]attempt{{what: "both", change: edits{"spec>admissionChecks": "yaml:[a]",
				"spec>admissionChecksStrategy": "yaml:{admissionChecks: [{name: a}]}"}}},
			[]attempt{
				{what: "the list", change: edits{"spec>admissionChecks": "yaml:[a]"}},
				{what: "the strategy", change: edits{"spec>admissionChecks": "yaml:[]",
					"spec>admissionChecksStrategy": "yaml:{admissionChecks: [{name: a, onFlavors: [f]}]}"}},
			}},
		{of, "namespaceSelector is a selector", inCEL,
			"operator must be In or NotIn with values, or Exists or DoesNotExist without",
			[]attempt{
				{what: "another operator",
					change: edits{"spec>namespaceSelector": "yaml:{matchExpressions: [{key: k, operator: Is, values: [v]}]}"}},
				{what: "In nothing", change: edits{"spec>namespaceSelector": "yaml:{matchExpressions: [{key: k, operator: In}]}"}},
				{what: "Exists with values",
					change: edits{"spec>namespaceSelector": "yaml:{matchExpressions: [{key: k, operator: Exists, values: [v]}]}"}},
			},
			[]attempt{
				{what: "all", change: edits{"spec>namespaceSelector": map[string]any{}}},
				{what: "some",
					change: edits{
						"spec>namespaceSelector": "yaml:{matchLabels: {a: b}, matchExpressions: [{key: k, operator: NotIn, values: [v]}, {key: l, operator: Exists}]}"}},
			}},
		{of, "keys of namespaceSelector can be keys of labels", inQuota, "namespaceSelector: keys must be qualified names",
			[]attempt{
				{what: "a space in matchLabels", change: edits{"spec>namespaceSelector": "yaml:{matchLabels: {'a b': c}}"}},
				{what: "two prefixes in matchExpressions",
					change: edits{"spec>namespaceSelector": "yaml:{matchExpressions: [{key: a/b/c, operator: Exists}]}"}},
			},
			[]attempt{{what: "a prefix",
				change: edits{
					"spec>namespaceSelector": "yaml:{matchLabels: {kubernetes.io/metadata.name: c}, matchExpressions: [{key: example.com/A_b, operator: DoesNotExist}]}"}}}},
		{of, "values of namespaceSelector can be values of labels", inQuota, "namespaceSelector: values must be label values",
			[]attempt{
				{what: "a space in matchLabels", change: edits{"spec>namespaceSelector": "yaml:{matchLabels: {a: b c}}"}},
				{what: "a slash in matchExpressions",
					change: edits{"spec>namespaceSelector": "yaml:{matchExpressions: [{key: k, operator: In, values: [v, w/x]}]}"}},
			},
			[]attempt{{what: "an empty one",
				change: edits{
					"spec>namespaceSelector": "yaml:{matchLabels: {a: ''}, matchExpressions: [{key: k, operator: In, values: ['', A.b_c-9]}]}"}}}},
	}
}

func localQueueRules() []rule {
	of := "LocalQueue"
	return []rule{
		{of, "clusterQueue is fixed", inCEL, "field is immutable",
			[]attempt{
				{what: "another", before: edits{}, change: edits{"spec>clusterQueue": "other"}},
				{what: "none", before: edits{}, change: edits{"spec>clusterQueue": nil}},
			},
			[]attempt{
				{what: "one where there was none", before: edits{"spec>clusterQueue": nil},
					change: edits{"spec>clusterQueue": "cq"}},
				{what: "the stop policy", before: edits{}, change: edits{"spec>stopPolicy": "Hold"}},
			}},
		{of, "stopPolicy is None, Hold or HoldAndDrain", inSchema, "Unsupported value",
			[]attempt{{what: "another", change: edits{"spec>stopPolicy": "Stop"}}},
			[]attempt{{what: "Hold", change: edits{"spec>stopPolicy": "Hold"}}}},
		{of, "clusterQueue is a DNS subdomain", inSchema, "should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]",
			[]attempt{{what: "capitals", change: edits{"spec>clusterQueue": "CQ"}}},
			[]attempt{{what: "a name", change: edits{"spec>clusterQueue": "a.b-c"}}}},
		{of, "the weight of fair sharing is not negative", inCEL, "must be greater than or equal to 0",
			[]attempt{{what: "-1", change: edits{"spec>fairSharing>weight": "-1"}}},
			[]attempt{{what: "0", change: edits{"spec>fairSharing>weight": 0}}}},
		{of, "the weight of fair sharing is 0 or more than 10^-9", inCEL, "must be 0 or greater than 10^-9",
			[]attempt{{what: "10^-9", change: edits{"spec>fairSharing>weight": "1n"}}},
			[]attempt{{what: "2*10^-9", change: edits{"spec>fairSharing>weight": "2n"}}}},
		{of, "who may create LocalQueues does not choose their weight", inFairSharing,
			"is for whoever may update localqueues/fairsharing to say",
			[]attempt{
				{what: "of a new one", change: edits{"spec>fairSharing>weight": 1000000000}, user: queuer},
				{what: "where there was none", before: edits{}, change: edits{"spec>fairSharing>weight": 2}, user: queuer},
				{what: "another", before: edits{"spec>fairSharing>weight": 1},
					change: edits{"spec>fairSharing>weight": 2}, user: queuer},
				{what: "no more", before: edits{"spec>fairSharing>weight": "500m"},
					change: edits{"spec>fairSharing": nil}, user: queuer},
			},
			[]attempt{
				{what: "a new one without", change: edits{}, user: queuer},
				{what: "another change", before: edits{"spec>fairSharing>weight": 2},
					change: edits{"spec>stopPolicy": "Hold"}, user: queuer},
				{what: "of a new one by who may", change: edits{"spec>fairSharing>weight": 2}, user: sharer},
				{what: "another by who may", before: edits{"spec>fairSharing>weight": 1},
					change: edits{"spec>fairSharing>weight": 2}, user: sharer},
				{what: "by the operator", before: edits{}, change: edits{"spec>fairSharing>weight": 2}, user: operator},
				{what: "by an administrator", before: edits{}, change: edits{"spec>fairSharing>weight": 2}},
			}},
	}
}

// flavorsOf gives flavors with quota of the resources r0, r1 and so on.
func flavorsOf(flavors, resources int) []any {
	list := times(flavors, "{name: f%d}")
	for _, flavor := range list {
		flavor.(map[string]any)["resources"] = times(resources, "{name: r%d, nominalQuota: 1}")
	}
	return list
}

// groupsOf gives groups that share neither flavors nor resources.
func groupsOf(groups, flavors, resources int) []any {
	list := make([]any, groups)
	for g := range list {
		letter := string(rune('a' + g))
		names := times(resources, letter+"%d")
		quotas := times(resources, "{name: "+letter+"%d, nominalQuota: 1}")
		all := times(flavors, "{name: "+letter+"%d}")
		for _, flavor := range all {
			flavor.(map[string]any)["resources"] = quotas
		}
		list[g] = map[string]any{"coveredResources": names, "flavors": all}
	}
	return list
}
