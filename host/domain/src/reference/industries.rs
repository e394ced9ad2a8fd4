//! Industries: the sectors and subsectors of NAICS 2022, the North American Industry Classification System, as the U.S. Census Bureau publishes
//! it (<https://www.census.gov/naics/>). A work of the United States government, in the public domain (17 U.S.C. 105).
//!
//! An industry's id is the number of its code; of a sector with a range of codes (31-33) the first.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Industry {
    pub id: i64,
    /// As NAICS writes it.
    pub code: &'static str,
    pub name: &'static str,
    /// The sector of a subsector.
    pub sector: Option<i64>,
}

/// Who classifies so, for whoever shows the list.
pub const SOURCE: &str = "NAICS 2022, U.S. Census Bureau, public domain";

const fn sector(id: i64, code: &'static str, name: &'static str) -> Industry {
    Industry {
        id,
        code,
        name,
        sector: None,
    }
}

const fn subsector(sector: i64, id: i64, code: &'static str, name: &'static str) -> Industry {
    Industry {
        id,
        code,
        name,
        sector: Some(sector),
    }
}

/// The industry with this id.
pub fn industry(id: i64) -> Option<&'static Industry> {
    INDUSTRIES.iter().find(|industry| industry.id == id)
}

/// Each sector with its subsectors.
pub const INDUSTRIES: &[Industry] = &[
    sector(11, "11", "Agriculture, Forestry, Fishing and Hunting"),
    subsector(11, 111, "111", "Crop Production"),
    subsector(11, 112, "112", "Animal Production and Aquaculture"),
    subsector(11, 113, "113", "Forestry and Logging"),
    subsector(11, 114, "114", "Fishing, Hunting and Trapping"),
    subsector(
        11,
        115,
        "115",
        "Support Activities for Agriculture and Forestry",
    ),
    sector(21, "21", "Mining, Quarrying, and Oil and Gas Extraction"),
    subsector(21, 211, "211", "Oil and Gas Extraction"),
    subsector(21, 212, "212", "Mining (except Oil and Gas)"),
    subsector(21, 213, "213", "Support Activities for Mining"),
    sector(22, "22", "Utilities"),
    subsector(22, 221, "221", "Utilities"),
    sector(23, "23", "Construction"),
    subsector(23, 236, "236", "Construction of Buildings"),
    subsector(23, 237, "237", "Heavy and Civil Engineering Construction"),
    subsector(23, 238, "238", "Specialty Trade Contractors"),
    sector(31, "31-33", "Manufacturing"),
    subsector(31, 311, "311", "Food Manufacturing"),
    subsector(31, 312, "312", "Beverage and Tobacco Product Manufacturing"),
    subsector(31, 313, "313", "Textile Mills"),
    subsector(31, 314, "314", "Textile Product Mills"),
    subsector(31, 315, "315", "Apparel Manufacturing"),
    subsector(31, 316, "316", "Leather and Allied Product Manufacturing"),
    subsector(31, 321, "321", "Wood Product Manufacturing"),
    subsector(31, 322, "322", "Paper Manufacturing"),
    subsector(31, 323, "323", "Printing and Related Support Activities"),
    subsector(31, 324, "324", "Petroleum and Coal Products Manufacturing"),
    subsector(31, 325, "325", "Chemical Manufacturing"),
    subsector(31, 326, "326", "Plastics and Rubber Products Manufacturing"),
    subsector(31, 327, "327", "Nonmetallic Mineral Product Manufacturing"),
    subsector(31, 331, "331", "Primary Metal Manufacturing"),
    subsector(31, 332, "332", "Fabricated Metal Product Manufacturing"),
    subsector(31, 333, "333", "Machinery Manufacturing"),
    subsector(
        31,
        334,
        "334",
        "Computer and Electronic Product Manufacturing",
    ),
    subsector(
        31,
        335,
        "335",
        "Electrical Equipment, Appliance, and Component Manufacturing",
    ),
    subsector(31, 336, "336", "Transportation Equipment Manufacturing"),
    subsector(
        31,
        337,
        "337",
        "Furniture and Related Product Manufacturing",
    ),
    subsector(31, 339, "339", "Miscellaneous Manufacturing"),
    sector(42, "42", "Wholesale Trade"),
    subsector(42, 423, "423", "Merchant Wholesalers, Durable Goods"),
    subsector(42, 424, "424", "Merchant Wholesalers, Nondurable Goods"),
    subsector(42, 425, "425", "Wholesale Trade Agents and Brokers"),
    sector(44, "44-45", "Retail Trade"),
    subsector(44, 441, "441", "Motor Vehicle and Parts Dealers"),
    subsector(
        44,
        444,
        "444",
        "Building Material and Garden Equipment and Supplies Dealers",
    ),
    subsector(44, 445, "445", "Food and Beverage Retailers"),
    subsector(
        44,
        449,
        "449",
        "Furniture, Home Furnishings, Electronics, and Appliance Retailers",
    ),
    subsector(44, 455, "455", "General Merchandise Retailers"),
    subsector(44, 456, "456", "Health and Personal Care Retailers"),
    subsector(44, 457, "457", "Gasoline Stations and Fuel Dealers"),
    subsector(
        44,
        458,
        "458",
        "Clothing, Clothing Accessories, Shoe, and Jewelry Retailers",
    ),
    subsector(
        44,
        459,
        "459",
        "Sporting Goods, Hobby, Musical Instrument, Book, and Miscellaneous Retailers",
    ),
    sector(48, "48-49", "Transportation and Warehousing"),
    subsector(48, 481, "481", "Air Transportation"),
    subsector(48, 482, "482", "Rail Transportation"),
    subsector(48, 483, "483", "Water Transportation"),
    subsector(48, 484, "484", "Truck Transportation"),
    subsector(
        48,
        485,
        "485",
        "Transit and Ground Passenger Transportation",
    ),
    subsector(48, 486, "486", "Pipeline Transportation"),
    subsector(48, 487, "487", "Scenic and Sightseeing Transportation"),
    subsector(48, 488, "488", "Support Activities for Transportation"),
    subsector(48, 491, "491", "Postal Service"),
    subsector(48, 492, "492", "Couriers and Messengers"),
    subsector(48, 493, "493", "Warehousing and Storage"),
    sector(51, "51", "Information"),
    subsector(
        51,
        512,
        "512",
        "Motion Picture and Sound Recording Industries",
    ),
    subsector(51, 513, "513", "Publishing Industries"),
    subsector(51, 516, "516", "Broadcasting and Content Providers"),
    subsector(51, 517, "517", "Telecommunications"),
    subsector(
        51,
        518,
        "518",
        "Computing Infrastructure Providers, Data Processing, Web Hosting, and Related Services",
    ),
    subsector(
        51,
        519,
        "519",
        "Web Search Portals, Libraries, Archives, and Other Information Services",
    ),
    sector(52, "52", "Finance and Insurance"),
    subsector(52, 521, "521", "Monetary Authorities-Central Bank"),
    subsector(
        52,
        522,
        "522",
        "Credit Intermediation and Related Activities",
    ),
    subsector(
        52,
        523,
        "523",
        "Securities, Commodity Contracts, and Other Financial Investments and Related Activities",
    ),
    subsector(52, 524, "524", "Insurance Carriers and Related Activities"),
    subsector(
        52,
        525,
        "525",
        "Funds, Trusts, and Other Financial Vehicles",
    ),
    sector(53, "53", "Real Estate and Rental and Leasing"),
    subsector(53, 531, "531", "Real Estate"),
    subsector(53, 532, "532", "Rental and Leasing Services"),
    subsector(
        53,
        533,
        "533",
        "Lessors of Nonfinancial Intangible Assets (except Copyrighted Works)",
    ),
    sector(54, "54", "Professional, Scientific, and Technical Services"),
    subsector(
        54,
        541,
        "541",
        "Professional, Scientific, and Technical Services",
    ),
    sector(55, "55", "Management of Companies and Enterprises"),
    subsector(55, 551, "551", "Management of Companies and Enterprises"),
    sector(
        56,
        "56",
        "Administrative and Support and Waste Management and Remediation Services",
    ),
    subsector(56, 561, "561", "Administrative and Support Services"),
    subsector(56, 562, "562", "Waste Management and Remediation Services"),
    sector(61, "61", "Educational Services"),
    subsector(61, 611, "611", "Educational Services"),
    sector(62, "62", "Health Care and Social Assistance"),
    subsector(62, 621, "621", "Ambulatory Health Care Services"),
    subsector(62, 622, "622", "Hospitals"),
    subsector(62, 623, "623", "Nursing and Residential Care Facilities"),
    subsector(62, 624, "624", "Social Assistance"),
    sector(71, "71", "Arts, Entertainment, and Recreation"),
    subsector(
        71,
        711,
        "711",
        "Performing Arts, Spectator Sports, and Related Industries",
    ),
    subsector(
        71,
        712,
        "712",
        "Museums, Historical Sites, and Similar Institutions",
    ),
    subsector(
        71,
        713,
        "713",
        "Amusement, Gambling, and Recreation Industries",
    ),
    sector(72, "72", "Accommodation and Food Services"),
    subsector(72, 721, "721", "Accommodation"),
    subsector(72, 722, "722", "Food Services and Drinking Places"),
    sector(81, "81", "Other Services (except Public Administration)"),
    subsector(81, 811, "811", "Repair and Maintenance"),
    subsector(81, 812, "812", "Personal and Laundry Services"),
    subsector(
        81,
        813,
        "813",
        "Religious, Grantmaking, Civic, Professional, and Similar Organizations",
    ),
    subsector(81, 814, "814", "Private Households"),
    sector(92, "92", "Public Administration"),
    subsector(
        92,
        921,
        "921",
        "Executive, Legislative, and Other General Government Support",
    ),
    subsector(
        92,
        922,
        "922",
        "Justice, Public Order, and Safety Activities",
    ),
    subsector(92, 923, "923", "Administration of Human Resource Programs"),
    subsector(
        92,
        924,
        "924",
        "Administration of Environmental Quality Programs",
    ),
    subsector(
        92,
        925,
        "925",
        "Administration of Housing Programs, Urban Planning, and Community Development",
    ),
    subsector(92, 926, "926", "Administration of Economic Programs"),
    subsector(92, 927, "927", "Space Research and Technology"),
    subsector(
        92,
        928,
        "928",
        "National Security and International Affairs",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{ASSET_USE_CASES, CLOUD_PROVIDERS, JOB_FUNCTIONS};
    use std::collections::HashSet;

    /// 20 sectors and 96 subsectors, as NAICS counts them, each in its sector by its code.
    #[test]
    fn the_classification_is_whole() {
        let sectors = INDUSTRIES.iter().filter(|one| one.sector.is_none());
        assert_eq!((sectors.count(), INDUSTRIES.len()), (20, 116));
        for one in INDUSTRIES {
            let Some(id) = one.sector else { continue };
            let sector = industry(id).unwrap();
            let (first, last) = sector
                .code
                .split_once('-')
                .unwrap_or((sector.code, sector.code));
            let of = &one.code[..2];
            assert!((first..=last).contains(&of), "{one:?}");
            assert_eq!(one.code, one.id.to_string());
        }
    }

    /// No id is given twice, and no name.
    #[test]
    fn ids_are_unique() {
        let choices = |list: &[crate::reference::Choice]| -> Vec<_> {
            list.iter().map(|one| (one.id, one.name)).collect()
        };
        let clouds = CLOUD_PROVIDERS.iter().map(|one| (one.id, one.slug));
        let industries = INDUSTRIES.iter().map(|one| (one.id, one.code));
        for list in [
            choices(JOB_FUNCTIONS),
            choices(ASSET_USE_CASES),
            clouds.collect(),
            industries.collect(),
        ] {
            let ids: HashSet<_> = list.iter().map(|one| one.0).collect();
            let names: HashSet<_> = list.iter().map(|one| one.1).collect();
            assert_eq!((ids.len(), names.len()), (list.len(), list.len()));
        }
        for provider in CLOUD_PROVIDERS {
            let codes: HashSet<_> = provider.regions.iter().map(|region| region.0).collect();
            assert_eq!(codes.len(), provider.regions.len(), "{}", provider.name);
        }
    }
}
