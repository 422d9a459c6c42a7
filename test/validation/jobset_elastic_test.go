package validation

import "fmt"

// jobSetElasticRules are about replicated jobs whose numbers of pods the queue chooses.
func jobSetElasticRules() []rule {
	of := "JobSet"
	const annotations = workers + "template>spec>template>metadata"
	between := func(least, most string) edits {
		said := map[string]any{}
		if least != "" {
			said["muster.dev/min-replicas"] = least
		}
		if most != "" {
			said["muster.dev/max-replicas"] = most
		}
		return edits{annotations: map[string]any{"annotations": said},
			workers + "template>spec>parallelism": 4, workers + "template>spec>completions": 4}
	}
	many := func(pods int) edits {
		return edits{workers + "template>spec>parallelism": pods, workers + "template>spec>completions": pods}
	}
	inPlace := edits{
		"spec>failurePolicy":                           "yaml:{restartStrategy: InPlaceRestart}",
		leader + "template>spec>backoffLimit":          2147483647,
		leader + "template>spec>podReplacementPolicy":  "Failed",
		workers + "template>spec>backoffLimit":         2147483647,
		workers + "template>spec>podReplacementPolicy": "Failed",
	}
	const exclusive = "alpha.jobset.sigs.k8s.io/exclusive-topology"
	succeeds := func(rule string) edits {
		return edits{workers + "template>spec>successPolicy": "yaml:{rules: [" + rule + "]}",
			workers + "template>spec>completionMode": "Indexed"}
	}
	gangOf := func(pods int) edits {
		return edits{workers + "template>spec>scheduling": fmt.Sprintf(
			"yaml:{schedulingPolicy: {gang: {minCount: %d}}}", pods)}
	}
	return []rule{
		{of, "min-replicas is a number", inJobSetElastic,
			"the annotation muster.dev/min-replicas of a pod template must be a number from 1 to 9999",
			[]attempt{{what: "0", change: between("0", "")}, {what: "a word", change: between("two", "")},
				{what: "-1", change: between("-1", "")}},
			[]attempt{{what: "1", change: between("1", "")}, {what: "parallelism", change: between("4", "")}}},
		{of, "max-replicas is a number", inJobSetElastic,
			"the annotation muster.dev/max-replicas of a pod template must be a number from 1 to 9999",
			[]attempt{{what: "0", change: between("1", "0")}, {what: "a word", change: between("1", "many")}},
			[]attempt{{what: "parallelism", change: between("1", "4")}, {what: "more", change: between("1", "8")}}},
		{of, "max-replicas needs min-replicas", inJobSetElastic,
			"the annotation muster.dev/max-replicas of a pod template requires muster.dev/min-replicas",
			[]attempt{{what: "alone", change: between("", "4")}}, []attempt{{what: "both", change: between("4", "4")}}},
		{of, "one replicated job is elastic", inJobSetElastic,
			"one replicated job of a JobSet may have the annotation muster.dev/min-replicas",
			[]attempt{{what: "two", change: between("2",
				"").with(edits{leader + "template>spec>template>metadata": between("1", "")[annotations]})}},
			[]attempt{{what: "one", change: between("2", "")}}},
		{of, "an elastic replicated job is one Indexed Job whose pods all run at once", inJobSetElastic,
			"the annotation muster.dev/min-replicas needs a replicated job of one Indexed Job",
			[]attempt{
				{what: "two Jobs", change: between("2", "").with(edits{workers + "replicas": 2})},
				{what: "no Jobs", change: between("2", "").with(edits{workers + "replicas": 0})},
				{what: "a NonIndexed one",
					change: between("2", "").with(edits{workers + "template>spec>completionMode": "NonIndexed"})},
				{what: "more completions", change: between("2", "").with(edits{workers + "template>spec>completions": 8})},
				{what: "no completions", change: between("2", "").with(edits{workers + "template>spec>completions": nil})},
			},
			[]attempt{{what: "one", change: between("2", "").with(edits{workers + "replicas": 1})}}},
		{of, "parallelism is between min-replicas and max-replicas", inJobSetElastic,
			"parallelism must be between the annotations muster.dev/min-replicas and muster.dev/max-replicas of the pod template",
			[]attempt{
				{what: "below", change: between("5", "8")}, {what: "above", change: between("1", "3")},
				{what: "below, without an upper one", change: between("5", "")}, {what: "above, later", before: between("1", "4"),
					change: edits{workers + "template>spec>parallelism": 5, workers + "template>spec>completions": 5}},
			},
			[]attempt{{what: "between", change: between("2", "8")}}},
		{of, "an elastic Job has at most 10,000 pods", inJobSetElastic,
			"parallelism must be at most 10000 with the annotation muster.dev/min-replicas of the pod template",
			[]attempt{{what: "one more", change: between("2", "").with(many(10001))},
				{what: "as many as there can be", change: between("2", "").with(many(2147483647))}},
			[]attempt{{what: "10,000", change: between("2", "").with(many(10000))}}},
		{of, "an elastic JobSet does not restart in place", inJobSetElastic,
			"the annotation muster.dev/min-replicas cannot be used with restartStrategy InPlaceRestart",
			[]attempt{{what: "in place", change: between("2", "").with(inPlace)}},
			[]attempt{{what: "as Jobs",
				change: between("2", "").with(inPlace).with(edits{"spec>failurePolicy": "yaml:{restartStrategy: Recreate}"})}}},
		{of, "an elastic Job has no exclusive topology", inJobSetElastic,
			"the annotation muster.dev/min-replicas cannot be used with alpha.jobset.sigs.k8s.io/exclusive-topology",
			[]attempt{
				{what: "all have", change: between("2", "").with(edits{"metadata>annotations>" + exclusive: "rack"})},
				{what: "it has", change: between("2",
					"").with(edits{workers + "template>metadata>annotations": map[string]any{exclusive: "rack"}})},
			},
			[]attempt{{what: "another has",
				change: between("2", "").
					with(edits{leader + "template>metadata>annotations": map[string]any{exclusive: "rack"}})}}},
		{of, "the coordinator is a pod below min-replicas", inJobSetElastic,
			"spec.coordinator names a pod at or above the muster.dev/min-replicas of its replicated job",
			[]attempt{{what: "the first that may go",
				change: between("2", "").with(edits{"spec>coordinator": "yaml:{replicatedJob: workers, podIndex: 2}"})}},
			[]attempt{
				{what: "the last that stays",
					change: between("2", "").with(edits{"spec>coordinator": "yaml:{replicatedJob: workers, podIndex: 1}"})},
				{what: "of another replicated job",
					change: between("1", "").with(edits{"spec>coordinator": "yaml:{replicatedJob: leader, podIndex: 1}"})},
			}},
		{of, "success rules of Jobs name pods below min-replicas", inJobSetElastic,
			"a rule of a Job's successPolicy names an index at or above the muster.dev/min-replicas of its replicated job",
			[]attempt{
				{what: "the first that may go", change: between("2", "").with(succeeds(`{succeededIndexes: "0,2"}`))},
				{what: "the end of a range",
					change: between("2", "").with(succeeds(`{succeededIndexes: "0"}, {succeededIndexes: "0-3"}`))},
			},
			[]attempt{{what: "those that stay", change: between("2", "").with(succeeds(`{succeededIndexes: "0-1"}`))}}},
		{of, "success rules of Jobs wait for at most min-replicas pods", inJobSetElastic,
			"a rule of a Job's successPolicy waits for more pods than the muster.dev/min-replicas of its replicated job",
			[]attempt{{what: "one more", change: between("2", "").with(succeeds(`{succeededCount: 3}`))}},
			[]attempt{{what: "all that stay", change: between("2", "").with(succeeds(`{succeededCount: 2}`))}}},
		{of, "maxFailedIndexes is at most min-replicas", inJobSetElastic,
			"maxFailedIndexes of a Job is more than the muster.dev/min-replicas of its replicated job",
			[]attempt{{what: "one more",
				change: between("2", "").with(edits{workers + "template>spec>backoffLimitPerIndex": 1,
					workers + "template>spec>maxFailedIndexes": 3})}},
			[]attempt{{what: "all that stay",
				change: between("2", "").with(edits{workers + "template>spec>backoffLimitPerIndex": 1,
					workers + "template>spec>maxFailedIndexes": 2})}}},
		{of, "minCount of a gang is at most min-replicas", inJobSetElastic,
			"minCount of the gang in scheduling of a Job is more than the muster.dev/min-replicas of its replicated job",
			[]attempt{{what: "one more", change: between("2", "").with(gangOf(3))}},
			[]attempt{{what: "all that stay", change: between("2", "").with(gangOf(2))}}},
	}
}

// jobSetAgentRules are about JobSets whose pods are to have an agent.
func jobSetAgentRules() []rule {
	of := "JobSet"
	const inject = "muster.dev/inject-agent"
	all := edits{"metadata>annotations>" + inject: "true"}
	command := edits{container + "command": "yaml:[train]",
		workers + "template>spec>template>spec>containers>0>command": "yaml:[train]"}
	return []rule{
		{of, "inject-agent is true or false", inJobSetAgent,
			`the annotation muster.dev/inject-agent must be "true" or "false"`,
			[]attempt{
				{what: "yes", change: command.with(edits{"metadata>annotations>" + inject: "yes"})},
				{what: "yes, on a template",
					change: command.with(edits{workers + "template>metadata>annotations": map[string]any{inject: "yes"}})},
			},
			[]attempt{{what: "true", change: command.with(all)},
				{what: "false", change: edits{"metadata>annotations>" + inject: "false"}}}},
		{of, "an agent has a command to run", inJobSetAgent,
			"the annotation muster.dev/inject-agent needs a command in the first container of the pods",
			[]attempt{
				{what: "none", change: all},
				{what: "none in one of two", change: all.with(edits{container + "command": "yaml:[train]"})},
				{what: "none, where it is asked for later", before: edits{}, change: all},
			},
			[]attempt{
				{what: "each has one", change: command.with(all)},
				{what: "who has none wants no agent",
					change: all.with(edits{container + "command": "yaml:[train]",
						workers + "template>metadata>annotations": map[string]any{inject: "false"}})},
			}},
		{of, "the names that an agent adds are free", inJobSetAgent,
			"the annotation muster.dev/inject-agent adds a container muster-agent and volumes muster-agent and muster-token",
			[]attempt{
				{what: "a container", change: command.with(all).with(edits{container + "name": "muster-agent"})},
				{what: "a volume", change: command.with(all).
					with(edits{workers + "template>spec>template>spec>volumes": "yaml:[{name: muster-token, emptyDir: {}}]"})},
			},
			[]attempt{{what: "a container, and no agent is added", change: edits{container + "name": "muster-agent"}}}},
	}
}
