//! The hops of a node: which of them see a packet, and in which order.

use namecast_units::Instant;

use super::asf::Asf;
use super::best_route::BestRoute;
use super::multicast::Multicast;
use super::pcon::Pcon;
use super::random::{UNIFORM, WEIGHTED};
use super::self_learning::SelfLearning;
use super::{Actions, Context, Decision, Hop, OwnStrategy, StrategyChoices, StrategyKind};
use crate::fields::LinkFields;
use crate::table::{ChoiceId, Slot, Tables};

/// An event that hops hear of.
type Ask = fn(&mut dyn Hop, Instant, &mut Context<'_>) -> Actions;

/// All hops of a node that remember something.
#[derive(Debug, Default)]
pub(crate) struct Hops {
    /// Only while some prefix has it.
    asf: Option<Box<Asf>>,
    /// Only while some prefix has it.
    pcon: Option<Box<Pcon>>,
    pub(crate) learning: SelfLearning,
    /// For all names, in the order in which they are asked.
    installed: Vec<Box<dyn Hop>>,
    /// Strategies of the driver's own, by number.
    own: Vec<Box<dyn Hop>>,
    /// Whether one of the installed is to hear of what arrives before anybody else.
    pub(crate) see_arrivals: bool,
}

impl Hops {
    pub(crate) fn install(&mut self, hop: Box<dyn Hop>) {
        self.see_arrivals |= hop.sees_arrivals();
        self.installed.push(hop);
    }

    pub(crate) fn add_strategy(&mut self, word: &'static str, hop: Box<dyn Hop>) -> StrategyKind {
        let place = u16::try_from(self.own.len()).expect("less than 65 536 strategies");
        self.own.push(hop);
        StrategyKind::Own(OwnStrategy { place, word })
    }

    /// Starts what the first prefix with a strategy needs, and ends it with the last.
    pub(crate) fn reconsider(
        &mut self,
        tables: &mut Tables,
        before: Option<StrategyKind>,
        after: Option<StrategyKind>,
    ) {
        let count = |kind: Option<StrategyKind>, has: fn(&StrategyKind) -> bool| {
            usize::from(kind.is_some_and(|kind| has(&kind)))
        };
        let is_asf = |kind: &StrategyKind| matches!(kind, StrategyKind::Asf(_));
        let choices = self.asf.as_ref().map_or(0, |asf| asf.choices);
        let choices = choices + count(after, is_asf) - count(before, is_asf);
        if choices == 0 {
            self.asf = None;
        } else {
            let make = || Box::new(Asf::new(tables.config.max_measurements));
            self.asf.get_or_insert_with(make).choices = choices;
        }
        let is_pcon = |kind: &StrategyKind| matches!(kind, StrategyKind::Pcon(_));
        let choices = self.pcon.as_ref().map_or(0, |pcon| pcon.choices);
        let choices = choices + count(after, is_pcon) - count(before, is_pcon);
        if choices == 0 {
            self.pcon = None;
        } else {
            let make = || Box::new(Pcon::new(tables.config.max_measurements));
            self.pcon.get_or_insert_with(make).choices = choices;
        }
        let (started, ended) = (
            count(after, StrategyKind::learns),
            count(before, StrategyKind::learns),
        );
        self.learning.reconsider(tables, started, ended);
    }

    /// What ASF has measured, while some prefix has it.
    pub(crate) fn asf(&self) -> Option<&Asf> {
        self.asf.as_deref()
    }

    /// Forgets a face.
    pub(crate) fn remove_face(&mut self, face: crate::face::FaceId) {
        if let Some(asf) = &mut self.asf {
            asf.measurements.remove_face(face);
        }
        if let Some(pcon) = &mut self.pcon {
            pcon.remove_face(face);
        }
        self.learning.remove_face(face);
        self.installed
            .iter_mut()
            .for_each(|hop| hop.on_face_removed(face));
    }

    /// Asks those who are installed whether they take what arrived.
    #[cold]
    pub(crate) fn on_arrival(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        self.ask_installed(now, context, |hop, now, context| {
            hop.on_arrival(now, context)
        })
    }

    /// Asks those who are installed, and then the strategy of the Interest's name; returns the choice that it is by.
    #[inline]
    pub(crate) fn on_interest(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
    ) -> (ChoiceId, Actions) {
        let (choice, &kind) = context.choices.find(context.name, context.hashes);
        if self.installed.is_empty() {
            let actions = self.ask_strategy(kind, now, context, |hop, now, context| {
                hop.on_interest(now, context)
            });
            return (choice, actions);
        }
        let ask: Ask = |hop, now, context| hop.on_interest(now, context);
        let mut actions = self.ask_installed(now, context, ask);
        if actions.decision == Decision::Continue {
            actions = actions.and(self.ask_strategy(kind, now, context, ask));
        }
        (choice, actions)
    }

    /// Whether somebody is to hear of Data with these fields.
    #[inline]
    pub(crate) fn see_data(&self, fields: &LinkFields) -> bool {
        self.asf.is_some() || fields.prefix_announcement.is_some() || self.see_all()
    }

    /// Whether somebody is to hear of what the content store answers and of what expires.
    #[inline]
    pub(crate) fn see_all(&self) -> bool {
        let is_strategy = self.learning.is_on() || self.pcon.is_some() || !self.own.is_empty();
        is_strategy || !self.installed.is_empty()
    }

    #[cold]
    pub(crate) fn on_data(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        let mut actions = Actions::default();
        if let Some(asf) = &mut self.asf {
            actions = asf.on_data(now, context);
        }
        if let Some(pcon) = &mut self.pcon {
            actions = actions.and(pcon.on_data(now, context));
        }
        if self.learning.is_on() || context.fields.prefix_announcement.is_some() {
            actions = actions.and(self.learning.on_data(now, context));
        }
        self.ask_all(now, context, actions, |hop, now, context| {
            hop.on_data(now, context)
        })
    }

    #[cold]
    pub(crate) fn on_cache_hit(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        let actions = self.learning.on_cache_hit(now, context);
        self.ask_all(now, context, actions, |hop, now, context| {
            hop.on_cache_hit(now, context)
        })
    }

    #[cold]
    pub(crate) fn on_expiry(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        let mut actions = self.learning.on_expiry(now, context);
        if let Some(pcon) = &mut self.pcon {
            actions = actions.and(pcon.on_expiry(now, context));
        }
        self.ask_all(now, context, actions, |hop, now, context| {
            hop.on_expiry(now, context)
        })
    }

    /// Asks those who are installed, and then the strategy of the Interest's name.
    pub(crate) fn on_nack(
        &mut self,
        kind: StrategyKind,
        now: Instant,
        context: &mut Context<'_>,
    ) -> Actions {
        let ask: Ask = |hop, now, context| hop.on_nack(now, context);
        let actions = self.ask_installed(now, context, ask);
        match actions.decision {
            Decision::Continue => actions.and(self.ask_strategy(kind, now, context, ask)),
            _ => actions,
        }
    }

    /// Calls those whose time has come.
    #[cold]
    pub(crate) fn on_timeout(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        let mut actions = Actions::default();
        if self.learning.is_on() {
            actions = self.learning.on_timeout(now, context);
        }
        for (slot, hop) in slots(&mut self.installed, &mut self.own) {
            if hop.poll_timeout().is_some_and(|at| at <= now) {
                context.slot = slot;
                actions = actions.and(hop.on_timeout(now, context));
            }
        }
        actions
    }

    /// When to call [`on_timeout`](Self::on_timeout) next, if ever.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let mut first = self.learning.poll_timeout();
        for hops in [&self.installed, &self.own] {
            for at in hops.iter().filter_map(|hop| hop.poll_timeout()) {
                first = Some(first.map_or(at, |first| first.min(at)));
            }
        }
        first
    }

    /// Asks those who are installed until one decides, and then the driver's own strategies that are concerned.
    fn ask_all(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        before: Actions,
        ask: Ask,
    ) -> Actions {
        if self.installed.is_empty() && self.own.is_empty() {
            return before;
        }
        let mut actions = before.and(self.ask_installed(now, context, ask));
        for place in 0..self.own.len() {
            let is_own = |kind: &StrategyKind| matches!(kind, StrategyKind::Own(own) if usize::from(own.place) == place);
            if actions.decision == Decision::Continue && concerns(context, is_own) {
                context.slot = Slot::own(place);
                actions = actions.and(ask(&mut *self.own[place], now, context));
            }
        }
        actions
    }

    fn ask_installed(&mut self, now: Instant, context: &mut Context<'_>, ask: Ask) -> Actions {
        let mut actions = Actions::default();
        for (place, hop) in self.installed.iter_mut().enumerate() {
            context.slot = Slot::installed(place);
            actions = actions.and(ask(&mut **hop, now, context));
            if actions.decision != Decision::Continue {
                break;
            }
        }
        actions
    }

    #[inline]
    fn ask_strategy(
        &mut self,
        kind: StrategyKind,
        now: Instant,
        context: &mut Context<'_>,
        ask: Ask,
    ) -> Actions {
        match kind {
            StrategyKind::BestRoute => ask(&mut BestRoute, now, context),
            StrategyKind::Multicast => ask(&mut Multicast, now, context),
            StrategyKind::Random => ask(&mut { UNIFORM }, now, context),
            StrategyKind::Weighted => ask(&mut { WEIGHTED }, now, context),
            StrategyKind::SelfLearning => ask(&mut self.learning, now, context),
            StrategyKind::Asf(_) => match &mut self.asf {
                Some(asf) => ask(&mut **asf, now, context),
                None => Actions::default(),
            },
            StrategyKind::Pcon(_) => match &mut self.pcon {
                Some(pcon) => ask(&mut **pcon, now, context),
                None => Actions::default(),
            },
            StrategyKind::Own(own) => match self.own.get_mut(usize::from(own.place)) {
                Some(hop) => {
                    context.slot = Slot::own(own.place.into());
                    ask(&mut **hop, now, context)
                }
                // It was added to another forwarder.
                None => Actions::default(),
            },
        }
    }
}

/// Whether the strategy of one of the entries, or of the packet's name where there is none, is one of these.
fn concerns(context: &Context<'_>, is_it: impl Fn(&StrategyKind) -> bool) -> bool {
    let choices: &StrategyChoices = context.choices;
    if context.entries.is_empty() {
        return is_it(choices.find(context.name, context.hashes).1);
    }
    let mut entries = context.entries.iter();
    entries.any(|&id| {
        let choice = context.tables.pit.get(id).choice;
        choices.kind(choice).is_some_and(&is_it)
    })
}

fn slots<'a>(
    installed: &'a mut [Box<dyn Hop>],
    own: &'a mut [Box<dyn Hop>],
) -> impl Iterator<Item = (Slot, &'a mut Box<dyn Hop>)> {
    let installed = installed.iter_mut().enumerate();
    let own = own.iter_mut().enumerate();
    let installed = installed.map(|(place, hop)| (Slot::installed(place), hop));
    installed.chain(own.map(|(place, hop)| (Slot::own(place), hop)))
}
