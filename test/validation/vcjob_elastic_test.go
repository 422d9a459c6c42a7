package validation

import "strings"

// vcJobElasticRules are about tasks whose numbers of pods the queue chooses.
func vcJobElasticRules() []rule {
	of := "VCJob"
	between := func(least, most string) edits {
		return edits{vcWorker + "template>metadata": map[string]any{"annotations": sizeAnnotations(least, most)}}
	}
	long := strings.Repeat("a", 51) // with -worker-9998 that is 63
	return []rule{
		{of, "min-replicas is a number", inVCJobElastic,
			"the annotation muster.dev/min-replicas of a task's template must be a number from 1 to 9999",
			[]attempt{{what: "0", change: between("0", "")}, {what: "a word", change: between("two", "")},
				{what: "-1", change: between("-1", "")}},
			[]attempt{{what: "1", change: between("1", "")}, {what: "replicas", change: between("4", "")}}},
		{of, "max-replicas is a number", inVCJobElastic,
			"the annotation muster.dev/max-replicas of a task's template must be a number from 1 to 9999",
			[]attempt{{what: "0", change: between("1", "0")}, {what: "a word", change: between("1", "many")},
				{what: "the largest number", change: between("1", "2147483647")}},
			[]attempt{{what: "replicas", change: between("1", "4")}, {what: "more", change: between("1", "8")}}},
		{of, "max-replicas needs min-replicas", inVCJobElastic,
			"the annotation muster.dev/max-replicas of a task's template requires muster.dev/min-replicas",
			[]attempt{{what: "alone", change: between("", "4")}}, []attempt{{what: "both", change: between("4", "4")}}},
		{of, "replicas is between min-replicas and max-replicas", inVCJobElastic,
			"replicas of a task must be between the annotations muster.dev/min-replicas and muster.dev/max-replicas of its template",
			[]attempt{
				{what: "below", change: between("5", "8")},
				{what: "above", change: between("1", "3")},
				{what: "below, without an upper one", change: between("5", "")},
				{what: "above, by an update", before: between("2", "8"), change: edits{vcWorker + "replicas": 9}},
			},
			[]attempt{{what: "between", change: between("2", "8")},
				{what: "between, by an update", before: between("2", "8"), change: edits{vcWorker + "replicas": 8}}}},
		{of, "one task is elastic", inVCJobElastic, "one task of a Job may have the annotation muster.dev/min-replicas",
			[]attempt{{what: "two", change: between("2",
				"").with(edits{vcMaster + "template>metadata": between("1", "")[vcWorker+"template>metadata"]})}},
			[]attempt{{what: "one", change: between("2", "")}}},
		{of, "max-replicas and the other tasks are at most 10,000 together", inVCJobElastic,
			"muster.dev/max-replicas and the replicas of other tasks must be at most 10000 together",
			[]attempt{{what: "9,999, and two masters", change: between("1", "9999").with(edits{vcMaster + "replicas": 2})}},
			[]attempt{{what: "9,999, and a master", change: between("1", "9999")}}},
		{of, "names of its pods have at most 63 characters with max-replicas", inVCJobElastic,
			"the name of the Job is too long for muster.dev/max-replicas: the names of its pods would exceed 63 characters",
			[]attempt{{what: "64", change: between("1", "9999").with(edits{"metadata>name": long + "b"})}},
			[]attempt{{what: "63", change: between("1", "9999").with(edits{"metadata>name": long})}}},
	}
}
