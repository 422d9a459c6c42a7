package validation

// jobElasticRules are about batch Jobs whose numbers of pods the queue chooses.
func jobElasticRules() []rule {
	of := "Job"
	sized := func(pods int) edits {
		return edits{"spec>completionMode": "Indexed", "spec>parallelism": pods, "spec>completions": pods}
	}
	between := func(least, most string) edits {
		said := map[string]any{}
		if least != "" {
			said["muster.dev/min-replicas"] = least
		}
		if most != "" {
			said["muster.dev/max-replicas"] = most
		}
		return sized(4).with(edits{"spec>template>metadata": map[string]any{"annotations": said}})
	}
	suspended := edits{"spec>suspend": true}
	// placed is what the start of a Job changes in its template.
	placed := func(least, most string) edits {
		said := between(least, most)["spec>template>metadata"].(map[string]any)["annotations"].(map[string]any)
		said["kueue.x-k8s.io/workload"] = "w"
		return edits{"spec>template>metadata>annotations": said}
	}
	ofJobSet :=
		edits{"metadata>ownerReferences": "yaml:[{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: js, uid: u, controller: true}]"}
	succeeds := func(rule string) edits { return edits{"spec>successPolicy": "yaml:{rules: [" + rule + "]}"} }
	return []rule{
		{of, "min-replicas is a number", inJobElastic,
			"the annotation muster.dev/min-replicas of the pod template must be a number from 1 to 9999",
			[]attempt{
				{what: "0", change: between("0", "")}, {what: "a word", change: between("two", "")},
				{what: "-1", change: between("-1", "")}, {what: "0, later", before: between("1", "").with(suspended),
					change: edits{"spec>template>metadata>annotations": map[string]any{"muster.dev/min-replicas": "0"}}},
			},
			[]attempt{{what: "1", change: between("1", "")}, {what: "parallelism", change: between("4", "")},
				{what: "0, in a JobSet", change: between("0", "").with(ofJobSet)}}},
		{of, "max-replicas is a number", inJobElastic,
			"the annotation muster.dev/max-replicas of the pod template must be a number from 1 to 9999",
			[]attempt{{what: "0", change: between("1", "0")}, {what: "a word", change: between("1", "many")}},
			[]attempt{{what: "parallelism", change: between("1", "4")}, {what: "more", change: between("1", "8")}}},
		{of, "max-replicas needs min-replicas", inJobElastic,
			"the annotation muster.dev/max-replicas of the pod template requires muster.dev/min-replicas",
			[]attempt{{what: "alone", change: between("", "4")}}, []attempt{{what: "both", change: between("4", "4")}}},
		{of, "an elastic Job is an Indexed one whose pods all run at once", inJobElastic,
			"the annotation muster.dev/min-replicas needs an Indexed Job whose completions are equal to its parallelism",
			[]attempt{
				{what: "a NonIndexed one", change: between("2", "").with(edits{"spec>completionMode": "NonIndexed"})},
				{what: "more completions", change: between("2", "").with(edits{"spec>completions": 8})},
			},
			[]attempt{{what: "four pods", change: between("2", "")},
				{what: "fewer at once by now, and started", before: between("2", "").with(suspended),
					change: placed("2", "").with(edits{"spec>parallelism": 3})}}},
		{of, "parallelism is between min-replicas and max-replicas", inJobElastic,
			"parallelism must be between the annotations muster.dev/min-replicas and muster.dev/max-replicas of the pod template",
			[]attempt{{what: "below", change: between("5", "8")}, {what: "above", change: between("1", "3")},
				{what: "below, without an upper one", change: between("5", "")}},
			[]attempt{{what: "between", change: between("2", "8")},
				{what: "above, later", before: between("1", "4"), change: sized(5)}, {what: "above, later, and started",
					before: between("1", "4").with(suspended), change: placed("1", "4").with(sized(5))}}},
		{of, "an elastic Job has at most 10,000 pods", inJobElastic,
			"parallelism must be at most 10000 with the annotation muster.dev/min-replicas of the pod template",
			[]attempt{{what: "one more", change: between("2", "").with(sized(10001))}},
			[]attempt{{what: "10,000", change: between("2", "").with(sized(10000))}}},
		{of, "success rules name pods below min-replicas", inJobElastic,
			"a rule of successPolicy names an index at or above muster.dev/min-replicas of the pod template",
			[]attempt{
				{what: "the first that may go", change: between("2", "").with(succeeds(`{succeededIndexes: "0,2"}`))},
				{what: "the end of a range",
					change: between("2", "").with(succeeds(`{succeededIndexes: "0"}, {succeededIndexes: "0-3"}`))},
			},
			[]attempt{{what: "those that stay", change: between("2", "").with(succeeds(`{succeededIndexes: "0-1"}`))}}},
		{of, "success rules wait for at most min-replicas pods", inJobElastic,
			"a rule of successPolicy waits for more pods than muster.dev/min-replicas of the pod template",
			[]attempt{{what: "one more", change: between("2", "").with(succeeds(`{succeededCount: 3}`))}},
			[]attempt{{what: "all that stay", change: between("2", "").with(succeeds(`{succeededCount: 2}`))}}},
		{of, "maxFailedIndexes is at most min-replicas", inJobElastic,
			"maxFailedIndexes is more than muster.dev/min-replicas of the pod template",
			[]attempt{{what: "one more",
				change: between("2", "").with(edits{"spec>backoffLimitPerIndex": 1, "spec>maxFailedIndexes": 3})}},
			[]attempt{{what: "all that stay",
				change: between("2", "").with(edits{"spec>backoffLimitPerIndex": 1, "spec>maxFailedIndexes": 2})}}},
	}
}
