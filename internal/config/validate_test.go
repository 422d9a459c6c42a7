package config

import (
	"strings"
	"testing"
)

func TestEachRuleAcceptsAndRefuses(t *testing.T) {
	const requeuing = "waitForPodsReady.requeuingStrategy."
	for name, tc := range map[string]struct{ accepted, refused, problem string }{
		"a timeout is positive": {
			"waitForPodsReady: {timeout: 1ms}", "waitForPodsReady: {timeout: 0s}",
			`waitForPodsReady.timeout: Invalid value: "0s": must be longer than 0s`},
		"a recovery timeout is positive": {
			"waitForPodsReady: {recoveryTimeout: 1s}", "waitForPodsReady: {recoveryTimeout: -1s}",
			`waitForPodsReady.recoveryTimeout: Invalid value: "-1s": must be longer than 0s`},
		"blockAdmission is one of three": {
			"waitForPodsReady: {blockAdmission: Queue}", "waitForPodsReady: {blockAdmission: Cohort}",
			`waitForPodsReady.blockAdmission: Unsupported value: "Cohort": supported values: "None", "Queue", "All"`},
		"the timestamp is one of two": {
			"waitForPodsReady: {requeuingStrategy: {timestamp: Creation}}",
			"waitForPodsReady: {requeuingStrategy: {timestamp: creation}}",
			requeuing + `timestamp: Unsupported value: "creation": supported values: "Eviction", "Creation"`},
		"the limit of requeues is not negative": {
			"waitForPodsReady: {requeuingStrategy: {backoffLimitCount: 0}}",
			"waitForPodsReady: {requeuingStrategy: {backoffLimitCount: -1}}",
			requeuing + "backoffLimitCount: Invalid value: -1: must be 0 or more"},
		"the first wait is not negative": {
			"waitForPodsReady: {requeuingStrategy: {backoffBaseSeconds: 0}}",
			"waitForPodsReady: {requeuingStrategy: {backoffBaseSeconds: -1}}",
			requeuing + "backoffBaseSeconds: Invalid value: -1: must be 0 or more"},
		"the longest wait is not negative": {
			"waitForPodsReady: {requeuingStrategy: {backoffBaseSeconds: 0, backoffMaxSeconds: 0}}",
			"waitForPodsReady: {requeuingStrategy: {backoffMaxSeconds: -1}}",
			requeuing + "backoffMaxSeconds: Invalid value: -1: must be 0 or more"},
		"the first wait is no longer than the longest": {
			"waitForPodsReady: {requeuingStrategy: {backoffBaseSeconds: 7200, backoffMaxSeconds: 7200}}",
			"waitForPodsReady: {requeuingStrategy: {backoffBaseSeconds: 7200}}",
			requeuing + "backoffBaseSeconds: Invalid value: 7200: is the first wait and must not exceed the longest: lower it, or raise backoffMaxSeconds, which is 3600"},
		"finished workloads are kept for no negative time": {
			"objectRetentionPolicies: {workloads: {afterFinished: 0s}}",
			"objectRetentionPolicies: {workloads: {afterFinished: -1s}}",
			`objectRetentionPolicies.workloads.afterFinished: Invalid value: "-1s": must be 0s or longer`},
		"deactivated workloads are kept for no negative time": {
			"objectRetentionPolicies: {workloads: {afterDeactivatedByMuster: 0s}}",
			"objectRetentionPolicies: {workloads: {afterDeactivatedByMuster: -1s}}",
			`objectRetentionPolicies.workloads.afterDeactivatedByMuster: Invalid value: "-1s": must be 0s or longer`},
		"one of two names of an option": {
			"objectRetentionPolicies: {workloads: {afterDeactivatedByKueue: 1s}}",
			"objectRetentionPolicies: {workloads: {afterDeactivatedByKueue: 1s, afterDeactivatedByMuster: 1s}}",
			"objectRetentionPolicies.workloads.afterDeactivatedByKueue: Forbidden: is another name for afterDeactivatedByMuster: keep one of the two"},
		"a strategy of preemption is one of two": {
			"fairSharing: {preemptionStrategies: [LessThanInitialShare]}", "fairSharing: {preemptionStrategies: [Never]}",
			`fairSharing.preemptionStrategies[0]: Unsupported value: "Never": supported values: "LessThanOrEqualToFinalShare", "LessThanInitialShare"`},
		"a strategy of preemption is named once": {
			"fairSharing: {preemptionStrategies: [LessThanOrEqualToFinalShare]}",
			"fairSharing: {preemptionStrategies: [LessThanOrEqualToFinalShare, LessThanOrEqualToFinalShare]}",
			`fairSharing.preemptionStrategies[1]: Duplicate value: "LessThanOrEqualToFinalShare"`},
		"the wider strategy comes last": {
			"fairSharing: {preemptionStrategies: [LessThanOrEqualToFinalShare, LessThanInitialShare]}",
			"fairSharing: {preemptionStrategies: [LessThanInitialShare, LessThanOrEqualToFinalShare]}",
			`fairSharing.preemptionStrategies: Invalid value: ["LessThanInitialShare","LessThanOrEqualToFinalShare"]: LessThanInitialShare is the wider condition: name it last, or alone`},
		"a half-life is not negative": {
			"admissionFairSharing: {usageHalfLifeTime: 0s}", "admissionFairSharing: {usageHalfLifeTime: -1s}",
			`admissionFairSharing.usageHalfLifeTime: Invalid value: "-1s": must be 0s or longer`},
		"a sampling interval is positive": {
			"admissionFairSharing: {usageSamplingInterval: 1s}", "admissionFairSharing: {usageSamplingInterval: 0s}",
			`admissionFairSharing.usageSamplingInterval: Invalid value: "0s": must be longer than 0s`},
		"a weight is not negative": {
			"admissionFairSharing: {resourceWeights: {cpu: 0}}", "admissionFairSharing: {resourceWeights: {cpu: -0.5}}",
			"admissionFairSharing.resourceWeights[cpu]: Invalid value: -0.5: must be 0 or more"},
		"a prefix is not a pattern": {
			"resources: {excludeResourcePrefixes: [example.com/]}", "resources: {excludeResourcePrefixes: [example.com/*]}",
			`resources.excludeResourcePrefixes[0]: Invalid value: "example.com/*": must be the beginning of resource names, such as example.com/, without * or blanks`},
		"a prefix is not empty": {
			"resources: {excludeResourcePrefixes: []}", `resources: {excludeResourcePrefixes: [""]}`,
			`resources.excludeResourcePrefixes[0]: Invalid value: "": must be the beginning of resource names, such as example.com/, without * or blanks`},
		"a transformation has an input": {
			"resources: {transformations: [{input: a, outputs: {b: 1}}]}", "resources: {transformations: [{outputs: {b: 1}}]}",
			"resources.transformations[0].input: Required value: name the requested resource that counts as others"},
		"an input is transformed once": {
			"resources: {transformations: [{input: a, outputs: {b: 1}}, {input: c, outputs: {b: 1}}]}",
			"resources: {transformations: [{input: a, outputs: {b: 1}}, {input: a, outputs: {b: 1}}]}",
			`resources.transformations[1].input: Duplicate value: "a"`},
		"pods are not an input": {
			"resources: {transformations: [{input: cpu, outputs: {b: 1}}]}",
			"resources: {transformations: [{input: pods, outputs: {b: 1}}]}",
			"resources.transformations[0].input: Forbidden: pods are counted by their number: give the ClusterQueue a quota of pods instead"},
		"pods are not an output": {
			"resources: {transformations: [{input: a, outputs: {cpu: 1}}]}",
			"resources: {transformations: [{input: a, outputs: {pods: 1}}]}",
			"resources.transformations[0].outputs[pods]: Forbidden: pods are counted by their number: give the ClusterQueue a quota of pods instead"},
		"a transformation retains or replaces": {
			"resources: {transformations: [{input: a, strategy: Replace}]}",
			"resources: {transformations: [{input: a, strategy: Drop}]}",
			`resources.transformations[0].strategy: Unsupported value: "Drop": supported values: "Retain", "Replace"`},
		"a transformation that retains its input has outputs": {
			"resources: {transformations: [{input: a, strategy: Replace, outputs: {}}]}",
			"resources: {transformations: [{input: a}]}",
			"resources.transformations[0].outputs: Required value: without outputs a retained input counts as before: list them, or use strategy Replace to count nothing"},
		"an output is not negative": {
			"resources: {transformations: [{input: a, outputs: {b: 0}}]}",
			"resources: {transformations: [{input: a, outputs: {b: -1}}]}",
			`resources.transformations[0].outputs[b]: Invalid value: "-1": must be 0 or more`},
		"uncovered resources block or are ignored": {
			"resources: {quotaCheckStrategy: IgnoreUndeclared}", "resources: {quotaCheckStrategy: Ignore}",
			`resources.quotaCheckStrategy: Unsupported value: "Ignore": supported values: "BlockUndeclared", "IgnoreUndeclared"`},
		"queue statuses have no negative interval": {
			"queueStatus: {interval: 0s}", "queueStatus: {interval: -1s}",
			`queueStatus.interval: Invalid value: "-1s": must be 0s or longer`},
		"the capacity of the default queue is one of three": {
			"defaultQueue: {capacity: unlimited}", "defaultQueue: {capacity: all}",
			`defaultQueue.capacity: Unsupported value: "all": supported values: "nodes", "unlimited", "quantities"`},
		"nodes on demand are one of three": {
			"defaultQueue: {nodesOnDemand: Always}", "defaultQueue: {nodesOnDemand: Sometimes}",
			`defaultQueue.nodesOnDemand: Unsupported value: "Sometimes": supported values: "Detect", "Always", "Never"`},
		"a capacity of quantities has some": {
			"defaultQueue: {capacity: quantities, quantities: {cpu: 4}}", "defaultQueue: {capacity: quantities}",
			"defaultQueue.quantities: Required value: list how much the queue gives of each resource, such as {cpu: 100, memory: 400Gi}"},
		"quantities that would not count": {
			"defaultQueue: {capacity: quantities, quantities: {cpu: 4}}", "defaultQueue: {quantities: {cpu: 4}}",
			"defaultQueue.quantities: Forbidden: they only apply with capacity: quantities: set that too, or leave them out"},
		"a quantity is not negative": {
			"defaultQueue: {capacity: quantities, quantities: {cpu: 0}}",
			"defaultQueue: {capacity: quantities, quantities: {cpu: -1}}",
			`defaultQueue.quantities[cpu]: Invalid value: "-1": must be 0 or more`},
		"a node is not lost before it is not ready": {
			"nodeFailure: {notReadyGrace: 0s}", "nodeFailure: {notReadyGrace: -1s}",
			`nodeFailure.notReadyGrace: Invalid value: "-1s": must be 0s or longer`},
		"the group of TrainingJobs": {
			"trainingJob: {group: training.example.com}", "trainingJob: {group: Training}",
			`trainingJob.group: Invalid value: "Training": must be the name of an API group, such as breezeml.ai`},
		"for how long pods of a TrainingJob may be pending": {
			"trainingJob: {pendingTimeout: 1s}", "trainingJob: {pendingTimeout: 0s}",
			`trainingJob.pendingTimeout: Invalid value: "0s": must be longer than 0s`},
		"how much later a TrainingJob queues again": {
			"trainingJob: {cooldown: 0s}", "trainingJob: {cooldown: -1s}",
			`trainingJob.cooldown: Invalid value: "-1s": must be 0s or longer`},
		"how long a job does not grow": {
			"elasticity: {growAfter: 0s}", "elasticity: {growAfter: -1s}",
			`elasticity.growAfter: Invalid value: "-1s": must be 0s or longer`},
		"what a resize costs": {
			"elasticity: {resizeCost: 0s}", "elasticity: {resizeCost: -1s}",
			`elasticity.resizeCost: Invalid value: "-1s": must be 0s or longer`},
		"which queues backfill": {
			"backfill: BestEffortFIFO", "backfill: StrictFIFO",
			`backfill: Unsupported value: "StrictFIFO": supported values: "None", "BestEffortFIFO"`},
		"how many starts are planned": {
			"reservations: 16", "reservations: 17",
			`reservations: Invalid value: 17: must be 1 to 16`},
	} {
		t.Run(name, func(t *testing.T) {
			accepts(t, header+tc.accepted)
			refuses(t, header+tc.refused, tc.problem)
		})
	}
}

func TestResourceNamesAreValidated(t *testing.T) {
	for _, text := range []string{
		"admissionFairSharing: {resourceWeights: {NAME: 1}}",
		"resources: {transformations: [{input: NAME, outputs: {b: 1}}]}",
		"resources: {transformations: [{input: a, multiplyBy: NAME, outputs: {b: 1}}]}",
		"resources: {transformations: [{input: a, outputs: {NAME: 1}}]}",
		"defaultQueue: {capacity: quantities, quantities: {NAME: 1}}",
	} {
		accepts(t, header+strings.ReplaceAll(text, "NAME", "example.com/gpu"))
		_, problems := parse([]byte(header + strings.ReplaceAll(text, "NAME", "example.com/a/b")))
		if len(problems) != 1 {
			t.Errorf("%s: a name with two slashes has problems %q, want one", text, problems)
		}
	}
}
