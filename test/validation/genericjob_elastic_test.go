package validation

// genericJobElasticRules are about types whose numbers the queue chooses.
func genericJobElasticRules() []rule {
	of := "GenericJob"
	between := func(least, most string) edits {
		return edits{worker + "template": map[string]any{
			"metadata": map[string]any{"annotations": sizeAnnotations(least, most)},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}},
		}}
	}
	and := func(e edits, path string, value any) edits {
		e[path] = value
		return e
	}
	return []rule{
		{of, "min-replicas is a number", inElastic,
			"the annotation muster.dev/min-replicas of a template must be a number from 1 to 9999",
			[]attempt{{what: "0", change: between("0", "")}, {what: "a word", change: between("two", "")},
				{what: "-1", change: between("-1", "")}},
			[]attempt{{what: "1", change: between("1", "")}, {what: "replicas", change: between("4", "")}}},
		{of, "max-replicas is a number", inElastic,
			"the annotation muster.dev/max-replicas of a template must be a number from 1 to 9999",
			[]attempt{{what: "0", change: between("1", "0")}, {what: "a word", change: between("1", "many")}},
			[]attempt{{what: "replicas", change: between("1", "4")}, {what: "more", change: between("1", "8")}}},
		{of, "max-replicas needs min-replicas", inElastic,
			"the annotation muster.dev/max-replicas of a template requires muster.dev/min-replicas",
			[]attempt{{what: "alone", change: between("", "4")}}, []attempt{{what: "both", change: between("4", "4")}}},
		{of, "replicas is between min-replicas and max-replicas", inElastic,
			"replicas of a type must be between the annotations muster.dev/min-replicas and muster.dev/max-replicas of its template",
			[]attempt{{what: "below", change: between("5", "8")}, {what: "above", change: between("1", "3")},
				{what: "below, without an upper one", change: between("5", "")}},
			[]attempt{{what: "between", change: between("2", "8")}}},
		{of, "one type is elastic", inElastic, "one type of a GenericJob may have the annotation muster.dev/min-replicas",
			[]attempt{{what: "two", change: and(between("2", ""), master+"template", between("1", "")[worker+"template"])}},
			[]attempt{{what: "one", change: between("2", "")}}},
		{of, "max-replicas and the other types are at most 5,000 together", inElastic,
			"muster.dev/max-replicas and the replicas of other types must be at most 5000 together",
			[]attempt{{what: "5,000, and a master", change: between("1", "5000")}},
			[]attempt{{what: "4,999, and a master", change: between("1", "4999")}}},
		{of, "success rules name replicas below min-replicas", inElastic,
			"a rule of spec.successRules names a replica at or above the muster.dev/min-replicas of its type",
			[]attempt{
				{what: "the first that may go", change: and(between("2", ""), "spec>successRules", "yaml:[{worker: [0, 2]}]")},
				{what: "as text", change: and(between("2", ""), "spec>successRules", `yaml:[{worker: ["3"]}]`)},
			},
			[]attempt{{what: "those that stay",
				change: and(between("2", ""), "spec>successRules", `yaml:[{worker: [0, "1"], master: [0]}]`)}}},
		{of, "failure rules name replicas below min-replicas", inElastic,
			"a rule of spec.failureRules names a replica at or above the muster.dev/min-replicas of its type",
			[]attempt{{what: "one that may go", change: and(between("2", ""), "spec>failureRules", "yaml:[{worker: [2]}]")}},
			[]attempt{{what: "those that stay",
				change: and(between("2", ""), "spec>failureRules", "yaml:[{worker: [0]}, {worker: [1]}]")}}},
	}
}

// sizeAnnotations returns the annotations of a template with these bounds, "" for none.
func sizeAnnotations(least, most string) map[string]any {
	out := map[string]any{}
	if least != "" {
		out["muster.dev/min-replicas"] = least
	}
	if most != "" {
		out["muster.dev/max-replicas"] = most
	}
	return out
}
