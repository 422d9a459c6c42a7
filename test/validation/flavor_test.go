package validation

import "strings"

func flavorRules() []rule {
	flavor, topology, check, class := "ResourceFlavor", "Topology", "AdmissionCheck", "WorkloadPriorityClass"
	withTopology := edits{"spec>topologyName": "t"}
	tolerations := func(value string) edits { return edits{"spec>tolerations": "yaml:" + value} }
	levels := func(value string) edits { return edits{"spec>levels": "yaml:" + value} }
	return []rule{
		{flavor, "it has at most 8 node labels, taints and tolerations", inSchema, "must have at most 8",
			[]attempt{
				{what: "9 labels", change: edits{"spec>nodeLabels": "yaml:{a: v, b: v, c: v, d: v, e: v, f: v, g: v, h: v, i: v}"}},
				{what: "9 taints", change: edits{"spec>nodeTaints": times(9, "{key: k%d, effect: NoSchedule}")}},
				{what: "9 tolerations", change: edits{"spec>tolerations": times(9, "{key: k%d, operator: Exists}")}},
			},
			[]attempt{{what: "8", change: edits{"spec>nodeTaints": times(8, "{key: k%d, effect: NoSchedule}"), "spec>tolerations": times(8, "{key: k%d, operator: Exists}")}}}},
		{flavor, "values of node labels have at most 63 characters", inSchema, "may not be more than 63",
			[]attempt{{what: "64", change: edits{"spec>nodeLabels>a": strings.Repeat("v", 64)}}},
			[]attempt{{what: "63", change: edits{"spec>nodeLabels>a": strings.Repeat("v", 63)}}}},
		{flavor, "keys of node labels are qualified names", inCEL, "keys must be qualified names, such as example.com/name",
			[]attempt{
				{what: "a space", change: edits{"spec>nodeLabels": `yaml:{"a b": c}`}},
				{what: "a taint with a space", change: edits{"spec>nodeTaints": `yaml:[{key: "a b", effect: NoSchedule}]`}},
				{what: "a taint with a name of 64 characters", change: edits{"spec>nodeTaints": "yaml:[{key: " + strings.Repeat("a", 64) + ", effect: NoSchedule}]"}},
				{what: "a taint without a key", change: edits{"spec>nodeTaints": `yaml:[{key: "", effect: NoSchedule}]`}},
				{what: "a toleration with two slashes", change: tolerations("[{key: a/b/c, operator: Exists}]")},
				{what: "a control character", change: tolerations(`[{key: "a\e[2J", operator: Exists}]`)},
			},
			[]attempt{
				{what: "a key", change: edits{"spec>nodeLabels": `yaml:{node.kubernetes.io/instance-type: c}`}},
				{what: "a taint", change: edits{"spec>nodeTaints": `yaml:[{key: nvidia.com/gpu, value: present, effect: NoSchedule}]`}},
			}},
		{flavor, "values of node labels are label values", inCEL, "values must be label values",
			[]attempt{
				{what: "a space", change: edits{"spec>nodeLabels": `yaml:{a: "b c"}`}},
				{what: "a taint", change: edits{"spec>nodeTaints": `yaml:[{key: k, value: "b c", effect: NoSchedule}]`}},
				{what: "a toleration", change: tolerations("[{key: k, value: b/c}]")},
			},
			[]attempt{
				{what: "empty", change: edits{"spec>nodeLabels": `yaml:{a: ""}`}},
				{what: "a toleration", change: tolerations("[{key: k, value: b.c}]")},
			}},
		{flavor, "the effect of a taint or toleration is one of three", inCEL, "supported taint effect values: 'NoSchedule', 'PreferNoSchedule', 'NoExecute'",
			[]attempt{
				{what: "a taint", change: edits{"spec>nodeTaints": "yaml:[{key: k, effect: Never}]"}},
				{what: "a toleration", change: tolerations("[{key: k, effect: Never}]")},
			},
			[]attempt{{what: "PreferNoSchedule", change: edits{"spec>nodeTaints": "yaml:[{key: k, effect: PreferNoSchedule}]"}}}},
		{flavor, "a toleration without a key tolerates everything", inCEL, "operator must be Exists when 'key' is empty",
			[]attempt{{what: "no key", change: tolerations("[{operator: Equal, value: v}]")}},
			[]attempt{{what: "Exists", change: tolerations("[{operator: Exists}]")}}},
		{flavor, "tolerationSeconds are for NoExecute", inCEL, "effect must be 'NoExecute' when 'tolerationSeconds' is set",
			[]attempt{{what: "any effect", change: tolerations("[{key: k, tolerationSeconds: 1}]")}},
			[]attempt{{what: "NoExecute", change: tolerations("[{key: k, effect: NoExecute, tolerationSeconds: 1}]")}}},
		{flavor, "the operator of a toleration is Equal or Exists", inCEL, "supported toleration values: 'Equal'(default), 'Exists'",
			[]attempt{{what: "In", change: tolerations("[{key: k, operator: In}]")}},
			[]attempt{{what: "none", change: tolerations("[{key: k, value: v}]")}}},
		{flavor, "a toleration with the operator Exists has no value", inCEL, "a value must be empty when 'operator' is 'Exists'",
			[]attempt{{what: "a value", change: tolerations("[{key: k, operator: Exists, value: v}]")}},
			[]attempt{{what: "none", change: tolerations("[{key: k, operator: Exists}]")}}},
		{flavor, "a topology needs a node label", inCEL, "at least one nodeLabel is required when topology is set",
			[]attempt{{what: "none", change: withTopology.with(edits{"spec>nodeLabels": nil})}},
			[]attempt{{what: "one", change: withTopology}}},
		{flavor, "with a topology it is fixed", inCEL, "resourceFlavorSpec are immutable when topologyName is set",
			[]attempt{
				{what: "another label", before: withTopology, change: edits{"spec>nodeLabels>b": "c"}},
				{what: "no topology", before: withTopology, change: edits{"spec>topologyName": nil}},
			},
			[]attempt{
				{what: "a topology where there was none", before: edits{}, change: withTopology},
				{what: "without a topology", before: edits{}, change: edits{"spec>nodeLabels>b": "c"}},
			}},
		{topology, "it has 1 to 16 levels", inSchema, "items",
			[]attempt{
				{what: "none", change: levels("[]")},
				{what: "17", change: edits{"spec>levels": times(17, "{nodeLabel: l%d}")}},
			},
			[]attempt{{what: "16", change: edits{"spec>levels": times(16, "{nodeLabel: l%d}")}}}},
		{topology, "levels are keys of node labels", inSchema, "should match",
			[]attempt{{what: "a space", change: levels(`[{nodeLabel: "a b"}]`)}},
			[]attempt{{what: "a key", change: levels("[{nodeLabel: topology.kubernetes.io/zone}]")}}},
		{topology, "levels are at most as long as keys of node labels", inCEL, "levels must be keys of node labels, qualified names such as example.com/rack",
			[]attempt{
				{what: "a name of 64 characters", change: levels("[{nodeLabel: example.com/" + strings.Repeat("a", 64) + "}]")},
				{what: "a prefix of 254 characters", change: levels("[{nodeLabel: " + strings.Repeat("a", 254) + "/b}]")},
			},
			[]attempt{{what: "63 characters", change: levels("[{nodeLabel: example.com/" + strings.Repeat("a", 63) + "}]")}}},
		{topology, "levels are unique", inCEL, "must be unique",
			[]attempt{{what: "twice", change: levels("[{nodeLabel: a}, {nodeLabel: b}, {nodeLabel: a}]")}},
			[]attempt{{what: "once each", change: levels("[{nodeLabel: a}, {nodeLabel: b}]")}}},
		{topology, "kubernetes.io/hostname is the lowest level", inCEL, "the kubernetes.io/hostname label can only be used at the lowest level of topology",
			[]attempt{{what: "the highest", change: levels("[{nodeLabel: kubernetes.io/hostname}, {nodeLabel: a}]")}},
			[]attempt{{what: "the lowest", change: levels("[{nodeLabel: a}, {nodeLabel: kubernetes.io/hostname}]")}}},
		{topology, "levels are fixed, unless hosts are the lowest before and after", inCEL, "field is immutable unless kubernetes.io/hostname is the lowest level before and after",
			[]attempt{
				{what: "no hosts", before: levels("[{nodeLabel: a}]"), change: levels("[{nodeLabel: b}]")},
				{what: "hosts taken away", before: edits{}, change: levels("[{nodeLabel: example.com/rack}]")},
			},
			[]attempt{{what: "hosts", before: edits{}, change: levels("[{nodeLabel: example.com/block}, {nodeLabel: example.com/rack}, {nodeLabel: kubernetes.io/hostname}]")}}},
		{check, "controllerName is given", inSchema, "controllerName",
			[]attempt{
				{what: "none", change: edits{"spec>controllerName": nil}},
				{what: "empty", change: edits{"spec>controllerName": ""}},
			},
			[]attempt{{what: "plain"}}},
		{check, "controllerName is fixed", inCEL, "field is immutable",
			[]attempt{{what: "another", before: edits{}, change: edits{"spec>controllerName": "other"}}},
			[]attempt{{what: "other parameters", before: edits{}, change: edits{"spec>parameters": "yaml:{apiGroup: example.com, kind: Config, name: c}"}}}},
		{check, "parameters name an object", inSchema, "spec.parameters",
			[]attempt{
				{what: "a kind with a dot", change: edits{"spec>parameters": "yaml:{apiGroup: example.com, kind: Con.fig, name: c}"}},
				{what: "no name", change: edits{"spec>parameters": "yaml:{apiGroup: example.com, kind: Config}"}},
			},
			[]attempt{{what: "one", change: edits{"spec>parameters": "yaml:{apiGroup: example.com, kind: Config, name: c}"}}}},
		{class, "value is given", inSchema, "value: Required value",
			[]attempt{{what: "none", change: edits{"value": nil}}},
			[]attempt{{what: "negative", change: edits{"value": -5}}}},
		{class, "description has at most 2,048 characters", inSchema, "may not be more than 2048",
			[]attempt{{what: "2,049", change: edits{"description": strings.Repeat("a", 2049)}}},
			[]attempt{{what: "2,048", change: edits{"description": strings.Repeat("a", 2048)}}}},
	}
}
