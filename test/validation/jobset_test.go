package validation

import (
	"slices"
	"strings"
)

const (
	leader  = "spec>replicatedJobs>0>"
	workers = "spec>replicatedJobs>1>"

	// container is the first container of the leader.
	container = leader + "template>spec>template>spec>containers>0>"
)

func jobSetSchemaRules() []rule {
	of := "JobSet"
	rules := edits{"spec>failurePolicy>rules": "yaml:[{name: r, action: FailJobSet}]"}
	const first = "spec>failurePolicy>rules>0>"
	return []rule{
		{of, "it has at most 128 replicated jobs", inSchema, "must have at most 128 items",
			[]attempt{{what: "129", change: edits{"spec>replicatedJobs": times(129, plainJob)}}},
			[]attempt{
				{what: "128", change: edits{"spec>replicatedJobs": times(128, plainJob)}},
				{what: "none", change: edits{"spec>replicatedJobs": nil}},
			}},
		{of, "names of replicated jobs are unique", inSchema, "Duplicate value",
			[]attempt{{what: "two of one name", change: edits{workers + "name": "leader"}}},
			[]attempt{{what: "plain"}}},
		{of, "the name of a replicated job is a DNS label", inSchema, "should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'",
			[]attempt{
				{what: "capitals", change: edits{leader + "name": "Leader"}},
				{what: "a dash at the end", change: edits{leader + "name": "leader-"}},
				{what: "empty", change: edits{leader + "name": ""}},
			},
			[]attempt{{what: "digits first", change: edits{leader + "name": "0-leader"}}}},
		{of, "replicas is not negative", inSchema, "should be greater than or equal to 0",
			[]attempt{{what: "-1", change: edits{leader + "replicas": -1}}},
			[]attempt{{what: "0", change: edits{leader + "replicas": 0}}}},
		{of, "a replicated job's template has a spec, with pods that have containers", inSchema, "Required value",
			[]attempt{
				{what: "no spec", change: edits{leader + "template": map[string]any{}}},
				{what: "no spec of pods", change: edits{leader + "template>spec>template": map[string]any{}}},
				{what: "no containers", change: edits{leader + "template>spec>template>spec>containers": nil}},
			},
			[]attempt{{what: "plain"}}},
		{of, "lists and maps of a template have at most 1,024 entries; names in a pod's spec, such as hostname or priorityClassName, at most 1,024 characters", inSchema, "1024",
			[]attempt{
				{what: "1,025 containers",
					change: edits{leader + "template>spec>template>spec>containers": times(1025, "{name: c%d}")}},
				{what: "1,025 tolerations",
					change: edits{leader + "template>spec>template>spec>tolerations": times(1025, "{key: k%d, operator: Exists}")}},
				{what: "a host name of 1,025 characters",
					change: edits{leader + "template>spec>template>spec>hostname": strings.Repeat("a", 1025)}},
			},
			[]attempt{{what: "1,024 containers",
				change: edits{leader + "template>spec>template>spec>containers": times(1024, "{name: c%d}")}}}},
		{of, "a replicated job depends on at most 5 others", inSchema, "must have at most 5 items",
			[]attempt{{what: "6",
				change: edits{"spec>replicatedJobs": append(times(7, plainJob),
					fromYAML("{name: last, dependsOn: [{name: w0, status: Ready}, {name: w1, status: Ready}, {name: w2, status: Ready}, {name: w3, status: Ready}, {name: w4, status: Ready}, {name: w5, status: Ready}], template: {spec: {template: {spec: {containers: [{name: c}]}}}}}"))}}},
			[]attempt{{what: "5",
				change: edits{"spec>replicatedJobs": append(times(7, plainJob),
					fromYAML("{name: last, dependsOn: [{name: w0, status: Ready}, {name: w1, status: Ready}, {name: w2, status: Ready}, {name: w3, status: Ready}, {name: w4, status: Ready}], template: {spec: {template: {spec: {containers: [{name: c}]}}}}}"))}}}},
		{of, "dependsOn waits for Ready or Complete", inSchema, "Unsupported value",
			[]attempt{{what: "Started", change: edits{workers + "dependsOn": "yaml:[{name: leader, status: Started}]"}}},
			[]attempt{{what: "Ready", change: edits{workers + "dependsOn": "yaml:[{name: leader, status: Ready}]"}}}},
		{of, "the operator of successPolicy is All or Any", inSchema, "Unsupported value",
			[]attempt{{what: "Most", change: edits{"spec>successPolicy": "yaml:{operator: Most}"}}},
			[]attempt{{what: "Any", change: edits{"spec>successPolicy": "yaml:{operator: Any}"}}}},
		{of, "startupPolicyOrder is AnyOrder or InOrder", inSchema, "Unsupported value",
			[]attempt{{what: "Backwards", change: edits{"spec>startupPolicy": "yaml:{startupPolicyOrder: Backwards}"}}},
			[]attempt{{what: "InOrder", change: edits{"spec>startupPolicy": "yaml:{startupPolicyOrder: InOrder}"}}}},
		{of, "restartStrategy is Recreate, BlockingRecreate or InPlaceRestart", inSchema, "Unsupported value",
			[]attempt{{what: "Never", change: edits{"spec>failurePolicy": "yaml:{restartStrategy: Never}"}}},
			[]attempt{{what: "BlockingRecreate",
				change: edits{"spec>failurePolicy": "yaml:{restartStrategy: BlockingRecreate, maxRestarts: -1}"}}}},
		{of, "the action of a failure rule is one of five", inSchema, "Unsupported value",
			[]attempt{{what: "Ignore", change: rules.with(edits{first + "action": "Ignore"})}},
			[]attempt{{what: "RestartJobAndIgnoreMaxRestarts",
				change: rules.with(edits{first + "action": "RestartJobAndIgnoreMaxRestarts"})}}},
		{of, "the name of a failure rule is an identifier", inSchema,
			"should match '^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?)?$'",
			[]attempt{
				{what: "a digit first", change: rules.with(edits{first + "name": "1rule"})},
				{what: "a colon last", change: rules.with(edits{first + "name": "rule:"})},
			},
			[]attempt{
				{what: "with a colon", change: rules.with(edits{first + "name": "r:u,l_e"})},
				{what: "none: it gets one", change: rules.with(edits{first + "name": nil})},
			}},
		{of, "the name of a failure rule has at most 128 characters", inSchema, "may not be more than 128",
			[]attempt{{what: "129", change: rules.with(edits{first + "name": strings.Repeat("a", 129)})}},
			[]attempt{{what: "128", change: rules.with(edits{first + "name": strings.Repeat("a", 128)})}}},
		{of, "a failure rule has at most 16 patterns", inSchema, "must have at most 16 items",
			[]attempt{{what: "17", change: rules.with(edits{first + "onJobFailureMessagePatterns": times(17, "a")})}},
			[]attempt{{what: "16", change: rules.with(edits{first + "onJobFailureMessagePatterns": times(16, "a")})}}},
		{of, "a pattern has at most 256 characters", inSchema, "may not be more than 256",
			[]attempt{{what: "257", change: patterns(1, strings.Repeat("a", 257))},
				{what: "an attack", change: patterns(26, strings.Repeat("x{1000}", 146))}},
			[]attempt{{what: "256", change: patterns(1, strings.Repeat("a", 256))}}},
		{of, "a failure policy has at most 64 rules", inSchema, "must have at most 64 items",
			[]attempt{{what: "65", change: edits{"spec>failurePolicy>rules": times(65, "{name: r%d, action: FailJobSet}")}}},
			[]attempt{{what: "64", change: edits{"spec>failurePolicy>rules": times(64, "{name: r%d, action: FailJobSet}")}}}},
		{of, "onJobFailureReasons are reasons of Jobs", inSchema, "Unsupported value",
			[]attempt{{what: "another", change: rules.with(edits{first + "onJobFailureReasons": "yaml:[OutOfLuck]"})}},
			[]attempt{{what: "all",
				change: rules.with(
					edits{
						first +
							"onJobFailureReasons": "yaml:[BackoffLimitExceeded, DeadlineExceeded, FailedIndexes, MaxFailedIndexesExceeded, PodFailurePolicy]"})}}},
		{of, "ttlSecondsAfterFinished is not negative", inSchema, "should be greater than or equal to 0",
			[]attempt{{what: "-1", change: edits{"spec>ttlSecondsAfterFinished": -1}}},
			[]attempt{{what: "0", change: edits{"spec>ttlSecondsAfterFinished": 0}}}},
		{of, "managedBy has at most 63 characters", inSchema, "may not be more than 63",
			[]attempt{{what: "64", change: edits{"spec>managedBy": "a.io/" + strings.Repeat("b", 59)}}},
			[]attempt{{what: "63", change: edits{"spec>managedBy": "a.io/" + strings.Repeat("b", 58)}}}},
		{of, "it has at most 50 volumeClaimPolicies, each of at most 50 templates", inSchema, "must have at most 50 items",
			[]attempt{
				{what: "51 policies", change: edits{"spec>volumeClaimPolicies": times(51, "{}")}},
				{what: "51 templates", change: edits{"spec>volumeClaimPolicies>0>templates": times(51, claim)}},
			},
			[]attempt{{what: "50 policies", change: edits{"spec>volumeClaimPolicies": times(50, "{}")}}}},
		{of, "whenDeleted is Delete or Retain", inSchema, "Unsupported value",
			[]attempt{{what: "Archive",
				change: edits{"spec>volumeClaimPolicies": "yaml:[{retentionPolicy: {whenDeleted: Archive}}]"}}},
			[]attempt{{what: "Retain",
				change: edits{"spec>volumeClaimPolicies": "yaml:[{retentionPolicy: {whenDeleted: Retain}}]"}}}},
	}
}

// patterns are so many equal patterns of failures, 16 to a rule.
func patterns(count int, pattern string) edits {
	rules := []any{}
	for left := count; left > 0; left -= 16 {
		rules = append(rules, map[string]any{"action": "FailJobSet",
			"onJobFailureMessagePatterns": slices.Repeat([]any{pattern}, min(left, 16))})
	}
	return edits{"spec>failurePolicy>rules": rules}
}

const (
	plainJob = "{name: w%d, template: {spec: {template: {spec: {containers: [{name: c}]}}}}}"
	claim    = "{metadata: {name: v%d}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}"
)

func jobSetRules() []rule {
	of := "JobSet"
	name := func(characters int) edits { return edits{"metadata>name": strings.Repeat("j", characters)} }
	coordinator := func(value string) edits { return edits{"spec>coordinator": "yaml:" + value} }
	inPlace := edits{
		"spec>failurePolicy":                           "yaml:{restartStrategy: InPlaceRestart}",
		leader + "template>spec>backoffLimit":          2147483647,
		leader + "template>spec>podReplacementPolicy":  "Failed",
		workers + "template>spec>backoffLimit":         2147483647,
		workers + "template>spec>podReplacementPolicy": "Failed",
	}
	return []rule{
		{of, "its name begins names of Jobs, which are DNS labels", inCEL,
			"the name of a JobSet begins the names of its Jobs",
			[]attempt{
				{what: "a digit first", change: edits{"metadata>name": "1st"}},
				{what: "a dot", change: edits{"metadata>name": "a.b"}},
			},
			[]attempt{
				{what: "dashes and digits", change: edits{"metadata>name": "a-1"}},
				{what: "without Jobs", change: edits{"metadata>name": "a.b", "spec>replicatedJobs": nil,
					"spec>network>subdomain": "a"}},
				{what: "a generated name", change: edits{"metadata>name": nil, "metadata>generateName": "a-"}},
			}},
		{of, "names of Jobs have at most 63 characters", inCEL,
			"JobSet name is too long, job names generated for this JobSet will exceed 63 characters",
			[]attempt{
				{what: "64", change: name(54).with(edits{leader + "template>spec>completionMode": "NonIndexed",
					workers + "template>spec>completionMode": "NonIndexed"})},
				{what: "64 for the last of 11",
					change: name(53).with(edits{workers + "replicas": 11, leader + "template>spec>completionMode": "NonIndexed",
						workers + "template>spec>completionMode": "NonIndexed"})},
				{what: "64 after a name is generated",
					change: edits{"metadata>name": nil, "metadata>generateName": strings.Repeat("j", 49),
						leader + "template>spec>completionMode": "NonIndexed", workers + "template>spec>completionMode": "NonIndexed"}},
			},
			[]attempt{{what: "63", change: name(53).with(edits{leader + "template>spec>completionMode": "NonIndexed",
				workers + "template>spec>completionMode": "NonIndexed"})}}},
		{of, "names of pods have at most 63 characters", inCEL,
			"JobSet name is too long, pod names generated for this JobSet will exceed 63 characters",
			[]attempt{
				{what: "64", change: name(46)},
				{what: "64 for the last of 11", change: name(45).with(edits{workers + "template>spec>completions": 11})},
			},
			[]attempt{{what: "63", change: name(45)}}},
		{of, "groupName has at most 63 characters", inCEL,
			".spec.replicatedJob[].groupName is too long, must be less than 63 characters",
			[]attempt{{what: "64", change: edits{leader + "groupName": strings.Repeat("g", 64)}}},
			[]attempt{{what: "63", change: edits{leader + "groupName": strings.Repeat("g", 63)}}}},
		{of, "groupName and subdomain are DNS labels", inCEL,
			"a DNS-1035 label must consist of lower case letters, digits or '-', start with a letter, and end with a letter or digit",
			[]attempt{
				{what: "a group with a digit first", change: edits{leader + "groupName": "1st"}},
				{what: "a subdomain with a dot", change: edits{"spec>network>subdomain": "a.b"}},
			},
			[]attempt{{what: "labels", change: edits{leader + "groupName": "a-1", "spec>network>subdomain": "a-1"}}}},
		{of, "subdomain has at most 63 characters", inCEL,
			".spec.network.subdomain is too long, must be less than 63 characters",
			[]attempt{{what: "64", change: edits{"spec>network>subdomain": strings.Repeat("s", 64)}}},
			[]attempt{{what: "63", change: edits{"spec>network>subdomain": strings.Repeat("s", 63)}}}},
		{of, "replicas times parallelism fits an int32", inCEL,
			"the product of replicas and parallelism must not exceed 2147483647 for replicatedJob 'leader'",
			[]attempt{{what: "2^31", change: edits{leader + "replicas": 2, leader + "template>spec>parallelism": 1 << 30,
				leader + "template>spec>completions": 1}}},
			[]attempt{{what: "2^30", change: edits{leader + "replicas": 1, leader + "template>spec>parallelism": 1 << 30,
				leader + "template>spec>completions": 1}}}},
		{of, "it has at most 10,000 Jobs", inCEL, "replicas of all replicatedJobs must be at most 10000 together",
			[]attempt{
				{what: "10,001", change: edits{leader + "replicas": 1, workers + "replicas": 10000}},
				{what: "as many as there are numbers", change: edits{workers + "replicas": 2147483647}},
			},
			[]attempt{{what: "10,000", change: edits{leader + "replicas": 1, workers + "replicas": 9999}}}},
		{of, "startupPolicy InOrder and dependsOn are not mixed", inCEL,
			"StartupPolicy and DependsOn APIs are mutually exclusive",
			[]attempt{{what: "both", change: edits{"spec>startupPolicy": "yaml:{startupPolicyOrder: InOrder}",
				workers + "dependsOn": "yaml:[{name: leader, status: Ready}]"}}},
			[]attempt{{what: "AnyOrder", change: edits{"spec>startupPolicy": "yaml:{startupPolicyOrder: AnyOrder}",
				workers + "dependsOn": "yaml:[{name: leader, status: Ready}]"}}}},
		{of, "the first replicated job depends on none", inCEL, "DependsOn can't be set for the first ReplicatedJob",
			[]attempt{{what: "the first", change: edits{leader + "dependsOn": "yaml:[{name: workers, status: Ready}]"}}},
			[]attempt{{what: "the second", change: edits{workers + "dependsOn": "yaml:[{name: leader, status: Ready}]"}}}},
		{of, "replicas is at most 1,024 where single Jobs restart", inCEL,
			"JobSet cannot have a failure policy rule with RestartJob or RestartJobAndIgnoreMaxRestarts action and a replicated job with replicas > 1024",
			[]attempt{{what: "1,025",
				change: edits{"spec>failurePolicy>rules": "yaml:[{action: RestartJob}]", leader + "replicas": 1025}}},
			[]attempt{
				{what: "1,024", change: edits{"spec>failurePolicy>rules": "yaml:[{action: RestartJob}]",
					leader + "replicas": 1024}},
				{what: "1,025 where all restart",
					change: edits{"spec>failurePolicy>rules": "yaml:[{action: RestartJobSet}]", leader + "replicas": 1025}},
			}},
		{of, "names of failure rules are unique", inCEL, "rule names are not unique",
			[]attempt{{what: "two of one name",
				change: edits{
					"spec>failurePolicy>rules": "yaml:[{name: a, action: FailJobSet}, {name: b, action: FailJobSet}, {name: a, action: RestartJobSet}]"}}},
			[]attempt{{what: "two without",
				change: edits{"spec>failurePolicy>rules": "yaml:[{action: FailJobSet}, {action: RestartJobSet}]"}}}},
		{of, "patterns of failures have at most 4,096 characters together", inCEL,
			"the onJobFailureMessagePatterns of all rules must have at most 4096 characters together",
			[]attempt{
				{what: "17 of 256", change: patterns(17, strings.Repeat("a", 256))},
				{what: "256 of 17", change: patterns(256, strings.Repeat("a", 17))},
			},
			[]attempt{{what: "16 of 256", change: patterns(16, strings.Repeat("a", 256))},
				{what: "an attack of 4,096 characters", change: patterns(16, strings.Repeat(`\pL`, 85))}}},
		{of, "a count in a pattern has at most two digits and follows a character or a class", inCEL,
			"a count of repetitions in onJobFailureMessagePatterns, such as {3}, must have at most two digits and follow a single character or a class, not a group",
			[]attempt{
				{what: "a thousand", change: patterns(1, "x{1000}")},
				{what: "up to a hundred", change: patterns(1, "[a-z]{1,100}")},
				{what: "at least a hundred", change: patterns(1, "x{100,}")},
				{what: "a group", change: patterns(1, "(a|b){9}")},
				{what: "groups in groups", change: patterns(2, "(((a){9}){9}){9}")},
			},
			[]attempt{
				{what: "99", change: patterns(1, "x{1,99}")},
				{what: "a class", change: patterns(1, "[0-9a-f]{32}")},
				{what: "a group any number of times", change: patterns(1, "(exit|code)+")},
				{what: "text that is no count", change: patterns(1, `\{"code": [0-9]+\}`)},
			}},
		{of, "counts in patterns are at most 512 together", inCEL,
			"the counts of repetitions in onJobFailureMessagePatterns, such as {3}, must be at most 512 together",
			[]attempt{{what: "6 of 99", change: patterns(6, "x{99}")}, {what: "540 in one",
				change: patterns(1, strings.Repeat("x{2,90}", 6))}}, []attempt{{what: "5 of 99", change: patterns(5, "x{99}")}}},
		{of, "onJobFailureMessagePatterns are regular expressions", inCEL,
			"onJobFailureMessagePatterns must be regular expressions in RE2 syntax",
			[]attempt{
				{what: "an open parenthesis", change: patterns(1, "exit (code")},
				{what: "a look-ahead, which RE2 has not", change: patterns(1, "(?!x)")},
				{what: "the last of many",
					change: patterns(16, "fine").with(edits{"spec>failurePolicy>rules>0>onJobFailureMessagePatterns>15": "["})},
			},
			[]attempt{{what: "expressions",
				change: edits{
					"spec>failurePolicy>rules": `yaml:[{action: FailJobSet, onJobFailureMessagePatterns: ["", "^exit code (1|2)$", "(?i)oom"]}]`}}}},
		{of, "with InPlaceRestart backoffLimit is the largest number", inCEL,
			"backoffLimit of every replicatedJob must be set to 2147483647 (MaxInt32) when in-place restart is enabled",
			[]attempt{{what: "not set", change: inPlace.with(edits{leader + "template>spec>backoffLimit": nil})}},
			[]attempt{{what: "set", change: inPlace}}},
		{of, "with InPlaceRestart podReplacementPolicy is Failed", inCEL,
			"podReplacementPolicy of every replicatedJob must be set to Failed when in-place restart is enabled",
			[]attempt{{what: "not set", change: inPlace.with(edits{workers + "template>spec>podReplacementPolicy": nil})}},
			[]attempt{{what: "set", change: inPlace}}},
		{of, "with InPlaceRestart completions equals parallelism", inCEL,
			"completions and parallelism of every replicatedJob must be set and equal to each other when in-place restart is enabled",
			[]attempt{
				{what: "not equal", change: inPlace.with(edits{leader + "template>spec>completions": 3})},
				{what: "not set", change: inPlace.with(edits{leader + "template>spec>parallelism": nil,
					leader + "template>spec>completions": nil})},
			},
			[]attempt{{what: "set", change: inPlace}}},
		{of, "the coordinator is of a replicated job", inCEL, "coordinator replicatedJob other does not exist",
			[]attempt{
				{what: "of another name", change: coordinator("{replicatedJob: other}")},
				{what: "of another name, on update", before: edits{}, change: coordinator("{replicatedJob: other}")},
			},
			[]attempt{
				{what: "of one", change: coordinator("{replicatedJob: leader, jobIndex: 0, podIndex: 1}")},
				{what: "of one, on update", before: edits{}, change: coordinator("{replicatedJob: workers}")},
			}},
		{of, "the coordinator's Job exists", inCEL, "coordinator job index is invalid for its replicatedJob",
			[]attempt{
				{what: "the second of one", change: coordinator("{replicatedJob: leader, jobIndex: 1}")},
				{what: "a negative one", change: coordinator("{replicatedJob: leader, jobIndex: -1}")},
				{what: "the second of one, on update", before: edits{},
					change: coordinator("{replicatedJob: leader, jobIndex: 1}")},
			},
			[]attempt{{what: "the second of two",
				change: coordinator("{replicatedJob: leader, jobIndex: 1}").with(edits{leader + "replicas": 2})}}},
		{of, "the coordinator's Job is indexed and has completions", inCEL,
			"job for coordinator pod must be indexed completion mode, and completions number must be set",
			[]attempt{
				{what: "NonIndexed", change: coordinator("{replicatedJob: leader}").
					with(edits{leader + "template>spec>completionMode": "NonIndexed"})},
				{what: "no completions",
					change: coordinator("{replicatedJob: leader}").with(edits{leader + "template>spec>completions": nil})},
			},
			[]attempt{{what: "indexed by default", change: coordinator("{replicatedJob: leader}")}}},
		{of, "the coordinator's pod exists", inCEL, "coordinator pod index is invalid for its replicatedJob",
			[]attempt{
				{what: "the third of two", change: coordinator("{replicatedJob: leader, podIndex: 2}")},
				{what: "a negative one", change: coordinator("{replicatedJob: leader, podIndex: -1}")},
			},
			[]attempt{{what: "the second of two", change: coordinator("{replicatedJob: leader, podIndex: 1}")}}},
		{of, "the coordinator's host name is a label", inCEL,
			"spec will lead to invalid label value for coordinator label jobset.sigs.k8s.io/coordinator",
			[]attempt{{what: "64 characters",
				change: coordinator("{replicatedJob: leader}").with(edits{"metadata>name": strings.Repeat("j", 26),
					"spec>network>subdomain": strings.Repeat("s", 26)})}},
			[]attempt{{what: "62 characters",
				change: coordinator("{replicatedJob: leader}").with(edits{"metadata>name": strings.Repeat("j", 26),
					"spec>network>subdomain": strings.Repeat("s", 25)})}}},
		{of, "managedBy is a domain-prefixed path", inCEL, "must be a domain-prefixed path (such as acme.io/foo)",
			[]attempt{
				{what: "no domain", change: edits{"spec>managedBy": "foo"}},
				{what: "no path", change: edits{"spec>managedBy": "acme.io/"}},
			},
			[]attempt{
				{what: "a path", change: edits{"spec>managedBy": "acme.io/foo/bar"}},
				{what: "the built-in controller", change: edits{"spec>managedBy": "jobset.sigs.k8s.io/jobset-controller"}},
			}},
		{of, "volume claim templates have no namespace", inCEL, "namespace cannot be set for VolumeClaimPolicies templates",
			[]attempt{{what: "one",
				change: edits{"spec>volumeClaimPolicies": "yaml:[{templates: [{metadata: {name: v0, namespace: ns}, spec: {}}]}]",
					container + "volumeMounts": "yaml:[{name: v0, mountPath: /v}]"}}},
			[]attempt{{what: "none",
				change: edits{"spec>volumeClaimPolicies": "yaml:[{templates: [{metadata: {name: v0}, spec: {}}]}]",
					container + "volumeMounts": "yaml:[{name: v0, mountPath: /v}]"}}}},
	}
}
