package validation

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// worstObject is an object that makes rules work hard: what users can write, within the API server's limit of some
// three megabytes, so that our rules look at as much as possible.
type worstObject struct {
	kind, what string
	change     edits
}

func worstObjects() []worstObject {
	jobs := edits{"spec>replicatedJobs": times(128, plainJob)}
	types := times(64, "{type: t%d, template: {spec: {containers: [{name: c, image: i}]}}}")
	large := strings.Repeat("a", 1400<<10)
	targets := edits{"spec>failurePolicy>rules": slices.Repeat(
		[]any{map[string]any{"action": "FailJobSet", "targetReplicatedJobs": times(128, "w127")}}, 64)}
	set := leader + "template>spec>template>spec>"
	return []worstObject{
		{"JobSet", "the patterns of the attack",
			edits{"spec>failurePolicy>rules": []any{map[string]any{"action": "FailJobSet",
				"onJobFailureMessagePatterns": slices.Repeat([]any{strings.Repeat("x{1000}", 146)}, 26)}}}},
		{"JobSet", "1,024 patterns of 256 characters", patterns(1024, strings.Repeat("x{1000}", 36))},
		{"JobSet", "16 patterns of classes", patterns(16, strings.Repeat(`\pL`, 85))},
		{"JobSet", "5 patterns of counts", patterns(5, "(?i)"+strings.Repeat("k{0,33}", 3)+strings.Repeat("a?", 100))},
		{"JobSet", "64 rules of 128 targets", jobs.with(targets)},
		{"JobSet", "128 jobs of 500 variables", edits{"spec>suspend": true, "spec>replicatedJobs": manyVariables(128, 500)}},
		{"JobSet", "2,500 claims", manyClaims(2500)},
		{"JobSet", "500 claims", manyClaims(500)},
		{"JobSet", "2,048 containers",
			edits{set + "containers": times(1024, "{name: c%d}"), set + "initContainers": times(1024, "{name: i%d}")}},
		{"JobSet", "4,096 amounts", edits{set + "containers>0>resources": map[string]any{"requests": manyAmounts(4096)}}},
		{"JobSet", "8 containers of 256 amounts", edits{set + "containers": amountsOf(8, 256)}},
		{"JobSet", "a text of 1.4 MiB", edits{set + "containers>0>args": []any{large}}},
		{"Job", "1,000 containers", edits{"spec>template>spec>containers": times(1000, "{name: c%d, image: i}")}},
		{"Job", "2,000 amounts",
			edits{"spec>template>spec>containers>0>resources": map[string]any{"requests": manyAmounts(2000),
				"limits": manyAmounts(2000)}}},
		{"Job", "8 containers of 256 amounts", edits{"spec>template>spec>containers": amountsOf(8, 256)}},
		{"Job", "10,000 annotations", edits{"metadata>annotations": manyLabels(10_000)}},
		{"Job", "a text of 1.4 MiB", edits{"spec>template>spec>containers>0>args": []any{large}}},
		{"Job", "10,000 annotations of the pods", edits{"spec>template>metadata>annotations": manyLabels(10_000)}},
		{"JobSet", "10,000 annotations", edits{"metadata>annotations": manyLabels(10_000)}},
		{"JobSet", "10,000 annotations of the pods",
			edits{leader + "template>spec>template>metadata>annotations": manyLabels(10_000)}},
		{"VCJob", "10,000 annotations", edits{"metadata>annotations": manyLabels(10_000)}},
		{"Queue", "10,000 annotations", edits{"metadata>annotations": manyLabels(10_000)}},
		{"LatticeJob", "10,000 annotations", edits{"metadata>annotations": manyLabels(10_000)}},
		{"TrainingJob", "10,000 annotations", edits{"metadata>annotations": manyLabels(10_000)}},
		{"ClusterQueue", "a selector of 10,000 labels", edits{"spec>namespaceSelector>matchLabels": manyLabels(10_000)}},
		{"GenericJob", "64 rules of 1,024 replicas", manyIndices(64)},
		{"GenericJob", "8 rules of 1,024 replicas", manyIndices(8)},
		{"GenericJob", "90,000 variables", edits{"spec>replicaSpecs": types,
			"spec>replicaSpecs>0>template>spec>containers>0>args": []any{strings.Repeat("$(replicas[t9])", 90_000)}}},
		{"GenericJob", "1,000 variables", edits{"spec>replicaSpecs": types, "spec>service": "yaml:{ports: [{port: 80}]}",
			"spec>replicaSpecs>0>template>spec>containers>0>args": []any{strings.Repeat("$(service.t63[0].host)", 1000)}}},
		{"GenericJob", "300,000 words",
			edits{"spec>replicaSpecs>0>template>spec>containers>0>args": slices.Repeat([]any{"a"}, 300_000)}},
		{"GenericJob", "4,000 words",
			edits{"spec>replicaSpecs>0>template>spec>containers>0>args": slices.Repeat([]any{"a"}, 4000)}},
		{"VCJob", "64 tasks of 64 policies", manyPolicies(64, 64)},
		{"VCJob", "64 tasks of 8 policies", manyPolicies(64, 8)},
		{"VCJob", "8 tasks of 64 policies", manyPolicies(8, 64)},
		{"LatticeJob", "64 tasks of 32 containers", manyContainers(64, 32)},
		{"LatticeJob", "4,096 files", manyFiles(32, 128)},
		{"TrainingJob", "2,048 containers", edits{"spec>replicaSpecs>template>spec>containers": times(1024, "{name: c%d}"),
			"spec>replicaSpecs>template>spec>initContainers": times(1024, "{name: i%d}")}},
		{"Workload", "64 pod sets of 64 containers", edits{"spec>podSets": slices.Collect(func(yield func(any) bool) {
			for i := range 64 {
				yield(map[string]any{"name": fmt.Sprintf("p%d", i), "count": 1,
					"template": map[string]any{"spec": map[string]any{"containers": times(64, "{name: c%d, image: i}")}}})
			}
		})}},
		{"Workload", "4,096 labels", edits{"spec>podSets>0>template>metadata": map[string]any{"labels": manyLabels(4096)}}},
		{"Workload", "8 containers of 256 amounts", edits{"spec>podSets>0>template>spec>containers": amountsOf(8, 256)}},
		{"Workload", "20,000 labels",
			edits{"spec>podSets>0>template>metadata": map[string]any{"labels": manyLabels(20_000)}}},
		{"ClusterQueue", "16 groups of 256 quotas", edits{"spec>resourceGroups": widest("9999999999999999")}},
		{"Cohort", "16 groups of 256 quotas", edits{"spec>resourceGroups": widest("9999999999999999")}},
		{"Queue", "10,000 amounts", edits{"spec>capability": manyAmounts(10_000)}},
		{"Queue", "256 amounts of each kind", edits{"spec>capability": manyAmounts(256), "spec>deserved": manyAmounts(256),
			"spec>guarantee>resource": manyAmounts(256)}},
		{"ResourceFlavor", "8 taints",
			edits{"spec>nodeTaints": slices.Repeat(
				[]any{map[string]any{"key": strings.Repeat("a.", 126) + "a/" + strings.Repeat("b", 63),
					"effect": "NoSchedule"}}, 8)}},
		{"Topology", "16 levels", edits{"spec>levels": times(16, "{nodeLabel: "+strings.Repeat("a.", 126)+"a/b%d}")}},
		{"LocalQueue", "a long name", edits{"spec>clusterQueue": strings.Repeat("a", 253)}},
		{"LatticeJob", "a long schedule", edits{"spec>schedule": "0 0 29 2 " + strings.Repeat("1,", 122) + "1"}},
		{"AdmissionCheck", "long names",
			edits{"spec": map[string]any{"controllerName": strings.Repeat("a", 253), "parameters": map[string]any{
				"apiGroup": strings.Repeat("a.", 126) + "a", "kind": strings.Repeat("a", 63), "name": strings.Repeat("a", 63)}}}},
		{"WorkloadPriorityClass", "a long description", edits{"description": strings.Repeat("a", 2048)}},
		{"Command", "a long message", edits{"message": strings.Repeat("a", 32768)}},
	}
}

// manyAmounts are amounts of so many resources that the rules have to compare.
func manyAmounts(count int) map[string]any {
	out := map[string]any{}
	for i := range count {
		out["a.b/r"+strconv.Itoa(i)] = "999999999999999999"
	}
	return out
}

// amountsOf are so many containers of so many amounts.
func amountsOf(containers, amounts int) []any {
	out := []any{}
	for i := range containers {
		out = append(out, map[string]any{"name": "c" + strconv.Itoa(i), "image": "i",
			"resources": map[string]any{"requests": manyAmounts(amounts), "limits": manyAmounts(amounts)}})
	}
	return out
}

// manyVariables are so many replicated jobs whose container has so many variables.
func manyVariables(jobs, count int) []any {
	var variables strings.Builder
	for i := range count {
		fmt.Fprintf(&variables, "{name: v%d, value: a},", i)
	}
	return times(jobs, strings.Replace(plainJob, "{name: c}", "{name: c, env: ["+variables.String()+"]}", 1))
}

func manyLabels(count int) map[string]any {
	out := maps.Clone(manyAmounts(count))
	for key := range out {
		out[key] = "a"
	}
	return out
}

// widest are 16 groups of 16 flavors and 16 resources: as many flavors and resources as a queue may have.
func widest(amount string) []any {
	out := []any{}
	for g := range 16 {
		resources, covered := []any{}, []any{}
		for r := range 16 {
			name := fmt.Sprintf("a.b/r%d-%d", g, r)
			covered = append(covered, name)
			resources = append(resources, map[string]any{"name": name, "nominalQuota": amount})
		}
		flavors := []any{}
		for f := range 16 {
			flavors = append(flavors, map[string]any{"name": fmt.Sprintf("f%d-%d", g, f), "resources": resources})
		}
		out = append(out, map[string]any{"coveredResources": covered, "flavors": flavors})
	}
	return out
}
