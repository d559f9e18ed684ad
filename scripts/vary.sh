#!/bin/sh
# Runs the papers' experiments with one number a fifth smaller and a fifth larger, three runs of each point, below FOLDER/varied.
# `namecast experiment report FOLDER --claims FILE` then says which verdicts stay.
#
# usage: scripts/vary.sh FOLDER [NAMECAST]
set -eu
folder=${1:?"write where results go, as in: scripts/vary.sh results"}
namecast=${2:-namecast}

# vary ID NAME PATH [PATH]: what is at both paths changes together.
vary() {
    for factor in 0.8 1.2; do
        # Checks are of the file as it is, and may fail.
        "$namecast" experiment run "$1" --runs 3 --scale "$3=$factor" ${4:+--scale "$4=$factor"} --out "$folder/varied/$2-$factor" || test $? -eq 1
    done
}

for id in arc/figure04 arc/figure05 arc/figure06 arc/figure11 arc/figure12 arc/figure13 rtsd/figure19a rtsd/figure19b rtsd/table2 rtsd/unlimited; do
    vary $id rate '**.rate'
    vary $id delay '**.delay'
done
for id in arc/figure07 arc/figure08; do
    vary $id rate '**.rate' convergence.below
done
for id in arc/figure09 arc/figure10; do
    vary $id rate '**.rate' convergence.above
done
for id in arc/figure07 arc/figure08 arc/figure09 arc/figure10 arc/figure14 arc/source-variation \
    rtsd/figure21 rtsd/figure22 rtsd/figure22-burst rtsd/figure23 rtsd/figure24 rtsd/table1; do
    vary $id delay '**.delay'
done
for id in rfcc/figure04 rfcc/figure05 rfcc/figure06 rfcc/figure07a rfcc/figure09 rfcc/figure10 rfcc/figure11 rfcc/figure13 \
    piggyback/loss piggyback/packets; do
    vary $id rate '**.rate'
    vary $id delay '**.delay'
done
vary arc/figure13 distances '**.consumer-delay-step'
vary rtsd/figure25 rate '**.rate'
vary rtsd/table1 age '**.staleness'
