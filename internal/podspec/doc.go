// Package podspec has pure functions over pod specs and templates: what the API server would store, what a pod requests
// and what of that counts against quota, why a pod would be refused, and how the flavors and places of an admission are
// injected into pods.
//
// Job APIs, replicas and admission call it. It knows no queue and no job API, and does not change its arguments unless
// a function says so.
package podspec
